// SPDX-License-Identifier: Apache-2.0
// The page that --help prints, at most 100 columns wide.
#ifndef SETU_COMMON_CONFIG_HELP_H_
#define SETU_COMMON_CONFIG_HELP_H_

#include <deque>
#include <string>
#include <vector>

#include "common/config/entry.h"

namespace setu::config {

struct Page {
  std::string program;
  std::string purpose;
  std::vector<std::string> examples;
  std::string positional;  // empty: none is taken
  std::string positional_help;
  std::deque<Entry> entries;  // in the order of declaration; addresses stay
};

std::string Render(const Page& page);

}  // namespace setu::config

#endif  // SETU_COMMON_CONFIG_HELP_H_
