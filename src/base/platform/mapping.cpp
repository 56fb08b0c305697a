#include "base/platform/mapping.h"

#include <sys/mman.h>

#include <limits>

#include "base/platform/file.h"

namespace posenc::platform {

Mapping::Mapping(const std::string& path) {
  const Descriptor file = open_to_read(path);
  size_ = stamp_of(file).size;
  if (size_ == 0) return;  // which cannot be mapped
  if (size_ > std::numeric_limits<std::size_t>::max())
    throw FileError(FileError::Kind::Other, "is larger than the address space");
  void* const data =
      mmap(nullptr, static_cast<std::size_t>(size_), PROT_READ, MAP_SHARED, file.number(), 0);
  if (data == MAP_FAILED) throw system_error("cannot be mapped");
  data_ = static_cast<const char*>(data);
}

Mapping::~Mapping() {
  if (data_ != nullptr) munmap(const_cast<char*>(data_), static_cast<std::size_t>(size_));
}

}  // namespace posenc::platform
