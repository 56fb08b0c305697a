#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "platform/file.h"

// Standard input, output and error, and files that are read as they come.
namespace posenc::platform {

bool stderr_is_terminal();

/// A program may be started without standard input, output or error. The next file that it opens,
/// the one it writes to for instance, would take that descriptor and get what is meant for a
/// terminal: this opens a descriptor that fails in its place. Ends the process where it cannot.
void hold_standard_descriptors();

/// A file, a pipe or a terminal, read from its beginning. Throws FileError.
class InputStream {
 public:
  /// "": standard input.
  explicit InputStream(const std::string& path);

  /// Whether there is something to read, the end or an error included; waits for it on request.
  bool is_ready(bool wait) const;
  /// At most `count` bytes; 0 at the end, nothing where a read has to be tried again.
  std::optional<std::size_t> read(void* into, std::size_t count);

 private:
  int number() const { return file_ ? file_.number() : 0; }

  Descriptor file_;  // of standard input: none, as it is not closed
};

}  // namespace posenc::platform
