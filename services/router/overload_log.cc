// SPDX-License-Identifier: Apache-2.0
#include "services/router/overload_log.h"

#include "absl/strings/str_cat.h"

namespace setu::router {

OverloadLog::~OverloadLog() {
  if (look_) loop_.Cancel(*look_);
}

void OverloadLog::Refused(absl::string_view why) {
  last_ = loop_.clock().Now();
  ++refused_;
  if (look_) return;
  began_ = last_;
  refused_ = 1;
  logger_.Warning(absl::StrCat("overloaded: prompts are refused: ", why));
  LookAt(last_ + kQuiet);
}

void OverloadLog::LookAt(TimePoint when) {
  look_ = loop_.At(when, [this, when] {
    if (last_ + kQuiet > when) return LookAt(last_ + kQuiet);
    look_.reset();
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(last_ - began_);
    logger_.Info(absl::StrCat("no longer overloaded: ", refused_, " prompts were refused in ",
                              seconds.count(), " s"));
  });
}

}  // namespace setu::router
