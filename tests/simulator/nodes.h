// SPDX-License-Identifier: Apache-2.0
// Who can be called at which address.
#ifndef SETU_TESTS_SIMULATOR_NODES_H_
#define SETU_TESTS_SIMULATOR_NODES_H_

#include <map>
#include <string>

namespace setu::simulator {

class DecodeNode;
class PrefillNode;

struct Nodes {
  std::map<std::string, DecodeNode*> decode;
  std::map<std::string, PrefillNode*> prefill;
};

}  // namespace setu::simulator

#endif  // SETU_TESTS_SIMULATOR_NODES_H_
