// SPDX-License-Identifier: Apache-2.0
// Serves GET /metrics in Prometheus' text format. A scrape reads what the owners have published and
// never waits for them.
//
//   SETU_ASSIGN_OR_RETURN(auto exposer,
//                         Exposer::Start("127.0.0.1:9466", "smollm2", "decode",
//                                        [&](Scrape& scrape) { Report(worker.snapshot(), scrape);
//                                        }));
#ifndef SETU_COMMON_METRICS_EXPOSER_H_
#define SETU_COMMON_METRICS_EXPOSER_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/metrics/scrape.h"

namespace setu::metrics {

class Exposer {
 public:
  // Called by a thread of the exposer for each scrape, by several at once if several scrape; must
  // stay valid until the exposer is gone.
  using Report = std::function<void(Scrape&)>;

  // `listen` is HOST:PORT; of a host's addresses the first is taken, IPv4 before IPv6. Port 0 takes
  // a free one. UNAVAILABLE names the address where it cannot be bound.
  static absl::StatusOr<std::unique_ptr<Exposer>> Start(const std::string& listen,
                                                        std::string model, std::string role,
                                                        Report report);
  ~Exposer();

  int port() const;
  std::string url() const;  // http://127.0.0.1:9466/metrics

 private:
  struct State;
  explicit Exposer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace setu::metrics

#endif  // SETU_COMMON_METRICS_EXPOSER_H_
