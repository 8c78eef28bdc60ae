// SPDX-License-Identifier: Apache-2.0
// The variables that a template sees: frames inside one another. A loop's round and a macro's call
// have their own; `if` has none, as in Jinja.
#ifndef SETU_COMMON_CHAT_SCOPE_H_
#define SETU_COMMON_CHAT_SCOPE_H_

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/chat/value.h"

namespace setu::chat {

class Scope {
 public:
  Scope() : frames_(1) {}

  // Undefined where no frame has it.
  Value Get(std::string_view name) const {
    for (size_t i = frames_.size(); i-- > 0;) {
      const auto found = frames_[i].variables.find(name);
      if (found != frames_[i].variables.end()) return found->second;
      if (frames_[i].closed) i = 1;  // a macro sees its own and the outermost
    }
    return Undefined{};
  }
  // In the innermost frame.
  void Set(const std::string& name, Value value) {
    frames_.back().variables.insert_or_assign(name, std::move(value));
  }

  // A frame for as long as this lives.
  class Inner {
   public:
    Inner(Scope& scope, bool closed) : scope_(scope) {
      scope_.frames_.push_back({.variables = {}, .closed = closed});
    }
    ~Inner() { scope_.frames_.pop_back(); }
    Inner(const Inner&) = delete;
    Inner& operator=(const Inner&) = delete;

   private:
    Scope& scope_;
  };

 private:
  struct Frame {
    std::map<std::string, Value, std::less<>> variables;
    bool closed = false;
  };
  std::vector<Frame> frames_;
};

}  // namespace setu::chat

#endif  // SETU_COMMON_CHAT_SCOPE_H_
