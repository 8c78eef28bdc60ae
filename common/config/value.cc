// SPDX-License-Identifier: Apache-2.0
#include "common/config/value.h"

#include <cmath>
#include <limits>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "common/base/host_port.h"
#include "common/base/status_macros.h"

namespace setu::config {
namespace {

absl::Status MustBe(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("must be ", what));
}

absl::StatusOr<std::vector<std::string>> SplitList(absl::string_view text) {
  std::vector<std::string> parts;
  if (!text.empty()) parts = absl::StrSplit(text, ',');
  for (std::string& part : parts) {
    absl::StripAsciiWhitespace(&part);
    if (part.empty()) return MustBe("a list a,b,c without empty parts");
  }
  return parts;
}

Value HostAndPort(std::string* target, absl::Status (*check)(absl::string_view)) {
  return {.placeholder = "HOST:PORT",
          .set = [=](absl::string_view text) -> absl::StatusOr<double> {
            if (absl::StrContains(text, "://") && !absl::StartsWith(text, "dns:///")) {
              return MustBe(absl::StrCat("HOST:PORT alone; leave out ",
                                         text.substr(0, text.find("://") + 3)));
            }
            SETU_RETURN_IF_ERROR(check(text));
            *target = std::string(text);
            return 0.0;
          },
          .get = [target] { return *target; },
          .write = nullptr};
}

// "dns:///Worker:1" and "worker:1" are one.
std::string PlainAddress(absl::string_view text) {
  return absl::AsciiStrToLower(absl::StripPrefix(text, "dns:///"));
}

absl::Status CheckAddress(absl::string_view text) {
  return ParseHostPort(PlainAddress(text), /*lowest_port=*/1).status();
}

bool Parse(absl::string_view text, int32_t* number) { return absl::SimpleAtoi(text, number); }
bool Parse(absl::string_view text, int64_t* number) { return absl::SimpleAtoi(text, number); }
bool Parse(absl::string_view text, double* number) {
  return absl::SimpleAtod(text, number) && std::isfinite(*number);
}

std::string Allowed(int32_t) { return "a whole number of at most 2147483647"; }
std::string Allowed(int64_t) { return "a whole number"; }
std::string Allowed(double) { return "a number"; }

// Target: T or std::optional<T>.
template <typename T, typename Target>
Value MakeNumber(Target* target, std::function<std::string()> get) {
  return {.placeholder = "N",
          .set = [target](absl::string_view text) -> absl::StatusOr<double> {
            T number{};
            if (!Parse(text, &number)) return MustBe(Allowed(T{}));
            *target = number;
            return static_cast<double>(number);
          },
          .get = std::move(get),
          .write = [](double bound) { return absl::StrFormat("%.15g", bound); }};
}

template <typename T>
Value Number(T* target) {
  return MakeNumber<T>(target, [target] { return absl::StrCat(*target); });
}

template <typename T>
Value OptionalNumber(std::optional<T>* target) {
  return MakeNumber<T>(target, [target] { return *target ? absl::StrCat(**target) : ""; });
}

// Target: std::string or std::optional<std::string>.
template <typename Target>
Value Text(Target* target, std::function<std::string()> get) {
  return {.placeholder = "TEXT",
          .set = [target](absl::string_view text) -> absl::StatusOr<double> {
            *target = std::string(text);
            return 0.0;
          },
          .get = std::move(get),
          .write = nullptr};
}

std::string WriteDuration(Duration duration) {
  return absl::FormatDuration(absl::FromChrono(duration));
}

struct Unit {
  absl::string_view name;
  int64_t bytes;
};
constexpr Unit kUnits[] = {{"TiB", int64_t{1} << 40},
                           {"GiB", int64_t{1} << 30},
                           {"MiB", int64_t{1} << 20},
                           {"KiB", int64_t{1} << 10},
                           {"B", 1},
                           {"", 1}};

std::string WriteBytes(int64_t bytes) {
  for (const Unit& unit : kUnits) {
    if (bytes == 0 || bytes % unit.bytes != 0) continue;
    return absl::StrCat(bytes / unit.bytes, unit.name);
  }
  return "0";
}

}  // namespace

Value TextValue(std::string* target) {
  return Text(target, [target] { return *target; });
}

Value TextValue(std::optional<std::string>* target) {
  return Text(target, [target] { return target->value_or(""); });
}

Value ListValue(std::vector<std::string>* target) {
  return {.placeholder = "A,B,...",
          .set = [target](absl::string_view text) -> absl::StatusOr<double> {
            SETU_ASSIGN_OR_RETURN(auto parts, SplitList(text));
            *target = std::move(parts);
            return 0.0;
          },
          .get = [target] { return absl::StrJoin(*target, ","); },
          .write = nullptr};
}

Value ListenValue(std::string* target) {
  return HostAndPort(target, [](absl::string_view text) {
    return ParseHostPort(text, /*lowest_port=*/0).status();
  });
}

Value AddressValue(std::string* target) { return HostAndPort(target, &CheckAddress); }

Value AddressesValue(std::vector<std::string>* target) {
  return {.placeholder = "HOST:PORT,...",
          .set = [target](absl::string_view text) -> absl::StatusOr<double> {
            SETU_ASSIGN_OR_RETURN(auto parts, SplitList(text));
            std::set<std::string> seen;
            for (const std::string& part : parts) {
              if (const absl::Status valid = CheckAddress(part); !valid.ok()) {
                return MustBe(absl::StrCat("a list of addresses: '", part, "' ", valid.message()));
              }
              if (!seen.insert(PlainAddress(part)).second) {
                return MustBe(
                    absl::StrCat("a list of different addresses: '", part, "' stands in it twice"));
              }
            }
            *target = std::move(parts);
            return 0.0;
          },
          .get = [target] { return absl::StrJoin(*target, ","); },
          .write = nullptr};
}

Value RepeatedValue(std::vector<std::string>* target) {
  return {.placeholder = "TEXT",
          .set = [target](absl::string_view text) -> absl::StatusOr<double> {
            target->emplace_back(text);
            return 0.0;
          },
          .get = [target] { return absl::StrJoin(*target, ", "); },
          .write = nullptr,
          .clear = [target] { target->clear(); }};
}

Value SwitchValue(bool* target) {
  return {.placeholder = "",
          .set = [target](absl::string_view text) -> absl::StatusOr<double> {
            const bool yes = text == "true" || text == "1";
            if (!yes && text != "false" && text != "0") return MustBe("true, false, 1 or 0");
            *target = yes;
            return 0.0;
          },
          .get = [target] { return *target ? "true" : "false"; },
          .write = nullptr};
}

Value NumberValue(int32_t* target) { return Number(target); }
Value NumberValue(int64_t* target) { return Number(target); }
Value NumberValue(double* target) { return Number(target); }
Value NumberValue(std::optional<int64_t>* target) { return OptionalNumber(target); }
Value NumberValue(std::optional<double>* target) { return OptionalNumber(target); }

Value DurationValue(Duration* target) {
  return {.placeholder = "TIME",
          .set = [target](absl::string_view text) -> absl::StatusOr<double> {
            absl::Duration parsed;
            const absl::Duration longest = absl::Hours(24 * 365 * 100);
            if (!absl::ParseDuration(text, &parsed) || absl::AbsDuration(parsed) > longest) {
              return MustBe("a time such as 250ms, 30s, 10m or 1h30m");
            }
            *target = absl::ToChronoNanoseconds(parsed);
            return absl::ToDoubleSeconds(parsed);
          },
          .get = [target] { return WriteDuration(*target); },
          .write = [](double s) { return absl::FormatDuration(absl::Seconds(s)); }};
}

Value BytesValue(int64_t* target) {
  return {.placeholder = "BYTES",
          .set = [target](absl::string_view text) -> absl::StatusOr<double> {
            for (const Unit& unit : kUnits) {
              if (!absl::EndsWith(text, unit.name)) continue;
              int64_t count = 0;
              const auto digits = text.substr(0, text.size() - unit.name.size());
              if (!absl::SimpleAtoi(digits, &count) || count < 0) break;
              if (count > std::numeric_limits<int64_t>::max() / unit.bytes) break;
              *target = count * unit.bytes;
              return static_cast<double>(*target);
            }
            return MustBe("a size such as 65536, 64KiB, 512MiB or 4GiB");
          },
          .get = [target] { return WriteBytes(*target); },
          .write = [](double bytes) { return WriteBytes(static_cast<int64_t>(bytes)); }};
}

}  // namespace setu::config
