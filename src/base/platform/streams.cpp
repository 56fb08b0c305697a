#include "base/platform/streams.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace posenc::platform {

bool stdout_is_terminal() { return ::isatty(STDOUT_FILENO) == 1; }
bool stderr_is_terminal() { return ::isatty(STDERR_FILENO) == 1; }

void reserve_standard_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(descriptor, F_GETFD) >= 0 || errno != EBADF) continue;
    // Opened the wrong way, so that using it fails.
    const int way = descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY;
    if (::open("/dev/null", way) != descriptor) std::_Exit(1);
  }
}

InputStream::InputStream(const std::string& path) {
  if (path.empty()) return;
  file_ = Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file_) throw system_error("cannot be opened");
}

bool InputStream::is_ready(bool wait) const {
  pollfd poll_for{number(), POLLIN, 0};
  for (;;) {
    const int ready = ::poll(&poll_for, 1, wait ? -1 : 0);
    if (ready >= 0) return ready > 0;
    if (errno != EINTR) throw system_error("cannot be waited for");
  }
}

std::optional<std::size_t> InputStream::read(void* into, std::size_t count) {
  const ssize_t got = ::read(number(), into, count);
  if (got >= 0) return static_cast<std::size_t>(got);
  // EAGAIN: another process that shares the pipe was faster, or made it non-blocking.
  if (errno != EINTR && errno != EAGAIN) throw system_error("cannot be read");
  return std::nullopt;
}

}  // namespace posenc::platform
