// SPDX-License-Identifier: Apache-2.0
// How much CPU the container grants.
//
//   double cpus = CgroupCpuQuota("/");  // infinity where there is no limit
//   int threads = ThreadsWithin(affinity, cpus);
#ifndef SETU_KERNELS_CPU_CPU_QUOTA_H_
#define SETU_KERNELS_CPU_CPU_QUOTA_H_

#include <string>

namespace setu::kernels {

// CPUs per period that the cgroups of this process allow: the least over its own group and all
// parents, v2 (cpu.max) and v1 (cpu.cfs_quota_us / cpu.cfs_period_us). Reads proc/self/cgroup and
// sys/fs/cgroup below the folder `root`. What cannot be read or parsed limits nothing. Inside a
// container the group's own path may be absent below sys/fs/cgroup; its root then stands for it.
double CgroupCpuQuota(const std::string& root);

// min(cpus, the quota's whole CPUs), at least 1. All threads of a step wait for each other: one
// that runs on the part of a CPU is stopped in every period, and they with it.
int ThreadsWithin(int cpus, double quota);

}  // namespace setu::kernels

#endif  // SETU_KERNELS_CPU_CPU_QUOTA_H_
