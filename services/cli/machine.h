// SPDX-License-Identifier: Apache-2.0
// What stands beside every figure, so that it can be judged: the machine that gave it.
#ifndef SETU_SERVICES_CLI_MACHINE_H_
#define SETU_SERVICES_CLI_MACHINE_H_

#include <cstdint>
#include <string>

namespace setu::cli {

std::string CpuModel();   // "unknown CPU" where the system does not say
std::string HugePages();  // always, madvise or never; "not known"
int64_t HugePageBytes();  // that this process holds in them; 0 where not known
double LoadAverage();     // of the last minute; 0 where not known

}  // namespace setu::cli

#endif  // SETU_SERVICES_CLI_MACHINE_H_
