#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "platform/atomic_file.h"

namespace posenc::io {

/// platform::AtomicFile with WeightsError as its errors: replaces the file at `path` once its new
/// content is complete.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path);
  void write(const void* data, std::size_t count);
  uint64_t written() const noexcept { return file_.written(); }
  void commit();

 private:
  platform::AtomicFile file_;
};

}  // namespace posenc::io
