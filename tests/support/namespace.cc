// SPDX-License-Identifier: Apache-2.0
#include "tests/support/namespace.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace setu::test {
namespace {

using rpc::Descriptor;

constexpr char kDevice[] = "wire";

absl::Status Failed(const char* what) {
  return absl::UnavailableError(
      absl::StrCat("this machine allows no network namespaces: ", what, ": ", strerror(errno)));
}

absl::StatusOr<Descriptor> ThreadsOwn() {
  Descriptor space(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
  if (space.get() < 0) return Failed("/proc/thread-self/ns/net");
  return space;
}

void Enter(const Descriptor& space) {
  SETU_CHECK(setns(space.get(), CLONE_NEWNET) == 0, "who made a namespace may enter it, and leave");
}

ifreq Named(const char* device) {
  ifreq request{};
  strncpy(request.ifr_name, device, IFNAMSIZ - 1);
  return request;
}

// In this thread's namespace (netdevice(7)).
absl::Status Set(const char* device, bool up) {
  const Descriptor any(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request = Named(device);
  if (ioctl(any.get(), SIOCGIFFLAGS, &request) != 0) return Failed(device);
  request.ifr_flags =
      static_cast<short>(up ? request.ifr_flags | IFF_UP : request.ifr_flags & ~IFF_UP);
  if (ioctl(any.get(), SIOCSIFFLAGS, &request) != 0) return Failed(device);
  return absl::OkStatus();
}

absl::Status SetAddress(const char* device, unsigned long what, const std::string& address) {
  const Descriptor any(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request = Named(device);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  SETU_CHECK(inet_pton(AF_INET, address.c_str(), &to.sin_addr) == 1, "an IPv4 address");
  memcpy(&request.ifr_addr, &to, sizeof to);
  if (ioctl(any.get(), what, &request) != 0) return Failed(device);
  return absl::OkStatus();
}

absl::StatusOr<Descriptor> Furnish(const std::string& address) {
  SETU_RETURN_IF_ERROR(Set("lo", true));
  Descriptor device(open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (device.get() < 0) return Failed("/dev/net/tun");
  ifreq request = Named(kDevice);
  request.ifr_flags = IFF_TUN | IFF_NO_PI;
  if (ioctl(device.get(), TUNSETIFF, &request) != 0) return Failed("TUNSETIFF");
  SETU_RETURN_IF_ERROR(SetAddress(kDevice, SIOCSIFADDR, address));
  SETU_RETURN_IF_ERROR(SetAddress(kDevice, SIOCSIFNETMASK, "255.255.255.0"));
  SETU_RETURN_IF_ERROR(Set(kDevice, true));
  return device;
}

absl::Status BecomeItsRoot() {
  if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return Failed("unshare");
  return Set("lo", true);
}

}  // namespace

absl::StatusOr<Namespace> Namespace::Make(const std::string& address) {
  SETU_ASSIGN_OR_RETURN(Descriptor home, ThreadsOwn());
  if (unshare(CLONE_NEWNET) != 0) {
    if (errno != EPERM) return Failed("unshare");
    SETU_RETURN_IF_ERROR(BecomeItsRoot());
    SETU_ASSIGN_OR_RETURN(home, ThreadsOwn());
    if (unshare(CLONE_NEWNET) != 0) return Failed("unshare");
  }
  absl::StatusOr<Descriptor> space = ThreadsOwn();
  absl::StatusOr<Descriptor> device = Furnish(address);
  Enter(home);
  SETU_RETURN_IF_ERROR(space.status());
  SETU_RETURN_IF_ERROR(device.status());
  return Namespace(*std::move(space), *std::move(device));
}

void Namespace::Run(absl::FunctionRef<void()> act) const {
  const absl::StatusOr<Descriptor> home = ThreadsOwn();
  SETU_CHECK(home.ok(), "a thread knows where it is");
  Enter(space_);
  act();
  Enter(*home);
}

void Namespace::SetDevice(bool up) const {
  Run([&] { SETU_CHECK(Set(kDevice, up).ok(), "who made a device may set it"); });
}

}  // namespace setu::test
