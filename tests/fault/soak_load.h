// SPDX-License-Identifier: Apache-2.0
// Clients that ask at random and hold every answer against what the request gives alone.
#ifndef SETU_TESTS_FAULT_SOAK_LOAD_H_
#define SETU_TESTS_FAULT_SOAK_LOAD_H_

#include <atomic>
#include <cstdint>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/client.h"

namespace setu::test {

class SoakLoad {
 public:
  struct Counts {
    std::atomic<uint64_t> ok = 0, refused = 0, cancelled = 0, expired = 0, tokens = 0;
    std::atomic<uint64_t> wrong_ends = 0, wrong_tokens = 0;  // answers
  };

  // The requests and their references, in a cluster of one process.
  SoakLoad(const std::string& model, uint64_t seed);
  ~SoakLoad() { Stop(); }

  // Clients that ask without pause until Stop; each answer that is wrong is a failure of the test.
  void Start(v1::InferenceService::Stub& stub, int clients);
  void Stop();
  const Counts& counts() const { return counts_; }

 private:
  struct Case {
    v1::GenerateRequest request;
    Answer reference;
  };
  void Ask(v1::InferenceService::Stub& stub, std::mt19937_64& random);
  void Count(const Answer& answer);

  std::vector<Case> cases_;
  std::mt19937_64 random_;  // seeds the clients
  Counts counts_;
  std::atomic<bool> stopping_ = false;
  std::vector<std::thread> clients_;
};

}  // namespace setu::test

#endif  // SETU_TESTS_FAULT_SOAK_LOAD_H_
