// SPDX-License-Identifier: Apache-2.0
// What entries of the catalogue share: who reports them, and upper bounds of histograms, which are
// vLLM's where it has one of the same meaning.
#ifndef SETU_COMMON_METRICS_CATALOGUE_PARTS_H_
#define SETU_COMMON_METRICS_CATALOGUE_PARTS_H_

namespace setu::metrics::catalogue {

inline constexpr char kEveryRole[] = "router, prefill, decode";
inline constexpr char kWorkers[] = "prefill, decode";
inline constexpr char kRouter[] = "router";
inline constexpr char kPrefill[] = "prefill";
inline constexpr char kDecode[] = "decode";

// Seconds.
inline constexpr double kFirstTokenBounds[] = {0.001, 0.005, 0.01, 0.02,  0.04,  0.06,  0.08, 0.1,
                                               0.25,  0.5,   0.75, 1.0,   2.5,   5.0,   7.5,  10.0,
                                               20.0,  40.0,  80.0, 160.0, 640.0, 2560.0};
inline constexpr double kInterTokenBounds[] = {0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2,
                                               0.3,  0.4,   0.5,  0.75,  1.0, 2.5,  5.0,
                                               7.5,  10.0,  20.0, 40.0,  80.0};
inline constexpr double kRequestBounds[] = {0.3,  0.5,   0.8,   1.0,   1.5,   2.0,    2.5,
                                            5.0,  10.0,  15.0,  20.0,  30.0,  40.0,   50.0,
                                            60.0, 120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0};
// Tokens, attempts.
inline constexpr double kTokenBounds[] = {1,   2,    5,    10,   20,    50,    100,   200,
                                          500, 1000, 2000, 5000, 10000, 20000, 50000, 100000};
inline constexpr double kAttemptBounds[] = {1, 2, 3, 4, 5, 8, 16};

}  // namespace setu::metrics::catalogue

#endif  // SETU_COMMON_METRICS_CATALOGUE_PARTS_H_
