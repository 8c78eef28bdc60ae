// SPDX-License-Identifier: Apache-2.0
#include "tests/fault/soak_load.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "tests/support/cluster.h"
#include "tests/support/tiny_model.h"

namespace setu::test {
namespace {

constexpr int kCases = 24;

uint32_t Below(std::mt19937_64& random, uint32_t limit) {
  return static_cast<uint32_t>(random() % limit);
}

v1::GenerateRequest RandomRequest(std::mt19937_64& random) {
  std::vector<uint32_t> ids(1 + Below(random, 250));
  for (uint32_t& id : ids) id = kTinyFirstByte + Below(random, 256);
  v1::GenerateRequest request = GreedyRequest(ids, 1 + Below(random, 200));
  v1::Sampling& sampling = *request.mutable_sampling();
  if (Below(random, 2) == 0) {
    sampling.set_temperature(0.9f);
    sampling.set_top_k(50);
    sampling.set_seed(random());
    sampling.set_repetition_penalty(1.1f);
  }
  if (Below(random, 4) == 0) sampling.set_n(3);
  if (Below(random, 4) == 0) request.mutable_stopping()->add_strings(std::string("e"));
  if (Below(random, 2) == 0) request.mutable_stopping()->set_ignore_eos(true);
  return request;
}

// What a client does to its own call, and how it may then end. A queue that is full may refuse any.
struct Whim {
  CallOptions options;
  std::set<grpc::StatusCode> ends = {grpc::StatusCode::OK, grpc::StatusCode::RESOURCE_EXHAUSTED};
};

Whim RandomWhim(std::mt19937_64& random) {
  Whim whim;
  switch (Below(random, 8)) {
    case 0:  // leaves after some answers
      whim.options.keep_going = [left = Below(random, 60)](const v1::GenerateResponse&) mutable {
        return left-- > 0;
      };
      whim.ends.insert(grpc::StatusCode::CANCELLED);
      break;
    case 1:  // has no time
      whim.options.deadline = std::chrono::milliseconds(1 + Below(random, 400));
      whim.ends.insert(grpc::StatusCode::DEADLINE_EXCEEDED);
      break;
    case 2:  // reads slowly
      whim.options.keep_going = [](const v1::GenerateResponse&) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        return true;
      };
      break;
    default:
      break;
  }
  return whim;
}

// Whether it is all of the reference where the answer is OK, else its beginning.
bool Fits(const Answer& reference, const Answer& answer) {
  const auto begins = [&](const auto& entry) {
    const auto& [index, choice] = entry;
    const Choice& whole = reference.choices.at(index);
    return choice.ids.size() <= whole.ids.size() &&
           std::equal(choice.ids.begin(), choice.ids.end(), whole.ids.begin()) &&
           whole.text.starts_with(choice.text);
  };
  const auto is_whole = [&](const auto& entry) {
    const auto& [index, whole] = entry;
    const auto choice = answer.choices.find(index);
    return choice != answer.choices.end() && choice->second.ids.size() == whole.ids.size() &&
           choice->second.text == whole.text;
  };
  return std::ranges::all_of(answer.choices, begins) &&
         (!answer.status.ok() || std::ranges::all_of(reference.choices, is_whole));
}

}  // namespace

SoakLoad::SoakLoad(const std::string& model, uint64_t seed) : random_(seed) {
  Cluster alone({.model = model});
  EXPECT_TRUE(alone.WaitReady());
  for (int i = 0; i < kCases; ++i) {
    Case made{.request = RandomRequest(random_), .reference = {}};
    made.reference = Generate(alone.stub(), made.request);
    EXPECT_TRUE(made.reference.ok()) << made.reference.Explain();
    cases_.push_back(std::move(made));
  }
}

void SoakLoad::Start(v1::InferenceService::Stub& stub, int clients) {
  stopping_ = false;
  for (int i = 0; i < clients; ++i) {
    clients_.emplace_back([this, &stub, seed = random_()] {
      std::mt19937_64 random(seed);
      while (!stopping_) Ask(stub, random);
    });
  }
}

void SoakLoad::Stop() {
  stopping_ = true;
  for (std::thread& client : clients_) client.join();
  clients_.clear();
}

void SoakLoad::Ask(v1::InferenceService::Stub& stub, std::mt19937_64& random) {
  const Case& asked = cases_[Below(random, kCases)];
  const Whim whim = RandomWhim(random);
  const Answer answer = Generate(stub, asked.request, whim.options);
  if (!whim.ends.contains(answer.status.error_code()) || !answer.broken.empty()) {
    ++counts_.wrong_ends;
    ADD_FAILURE() << "a wrong end: " << answer.Explain();
  }
  if (!Fits(asked.reference, answer)) {
    ++counts_.wrong_tokens;
    ADD_FAILURE() << "other tokens than alone: " << answer.Explain();
  }
  Count(answer);
}

void SoakLoad::Count(const Answer& answer) {
  for (const auto& [index, choice] : answer.choices) counts_.tokens += choice.ids.size();
  switch (answer.status.error_code()) {
    case grpc::StatusCode::OK:
      ++counts_.ok;
      break;
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      ++counts_.refused;
      break;
    case grpc::StatusCode::CANCELLED:
      ++counts_.cancelled;
      break;
    default:
      ++counts_.expired;
      break;
  }
}

}  // namespace setu::test
