#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "base/platform/file.h"

// Standard input, output and error, and files that are read as a stream.
namespace posenc::platform {

bool stdout_is_terminal();
bool stderr_is_terminal();

/// A program may be started without standard input, output or error. The next file that it opens,
/// such as its output, would get that descriptor and receive what is meant for the terminal, so
/// this fills each gap with a descriptor on which that use fails. Ends the process if it cannot.
void reserve_standard_descriptors();

/// A file, a pipe or a terminal, read from its beginning. Throws FileError.
class InputStream {
 public:
  /// "" means standard input.
  explicit InputStream(const std::string& path);

  /// Whether read() has something to return, the end and errors included; waits for it if `wait`.
  bool is_ready(bool wait) const;
  /// Reads at most `count` bytes; returns 0 at the end, nullopt if the read has to be tried again.
  std::optional<std::size_t> read(void* into, std::size_t count);

 private:
  int number() const { return file_ ? file_.number() : 0; }

  Descriptor file_;  // empty for standard input, which is not closed
};

}  // namespace posenc::platform
