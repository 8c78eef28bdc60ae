// SPDX-License-Identifier: Apache-2.0
#include "common/metrics/exposer.h"

#include <prometheus/collectable.h>
#include <prometheus/exposer.h>

#include <exception>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace setu::metrics {
namespace {

class Collector final : public prometheus::Collectable {
 public:
  Collector(std::string model, std::string role, Exposer::Report report)
      : model_(std::move(model)), role_(std::move(role)), report_(std::move(report)) {}

  std::vector<prometheus::MetricFamily> Collect() const override {
    Scrape scrape(model_, role_);
    report_(scrape);
    return scrape.Families();
  }

 private:
  const std::string model_;
  const std::string role_;
  const Exposer::Report report_;
};

// The HTTP library binds numeric addresses only.
std::string Numeric(const std::string& listen) {
  constexpr char kLocal[] = "localhost:";
  if (!absl::StartsWith(listen, kLocal)) return listen;
  return absl::StrCat("127.0.0.1:", absl::StripPrefix(listen, kLocal));
}

}  // namespace

struct Exposer::State {
  State(const std::string& listen, std::shared_ptr<Collector> source)
      : collector(std::move(source)), server(Numeric(listen)) {
    server.RegisterCollectable(collector);
  }
  const std::shared_ptr<Collector> collector;
  prometheus::Exposer server;
};

Exposer::Exposer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Exposer::~Exposer() = default;

absl::StatusOr<std::unique_ptr<Exposer>> Exposer::Start(const std::string& listen,
                                                        std::string model, std::string role,
                                                        Report report) {
  auto collector =
      std::make_shared<Collector>(std::move(model), std::move(role), std::move(report));
  try {
    return std::unique_ptr<Exposer>(
        new Exposer(std::make_unique<State>(listen, std::move(collector))));
  } catch (const std::exception& error) {
    return absl::UnavailableError(
        absl::StrCat("cannot serve metrics at ", listen, " (", error.what(),
                     "): is the port free and the host a numeric address of this machine?"));
  }
}

int Exposer::port() const { return state_->server.GetListeningPorts().front(); }

}  // namespace setu::metrics
