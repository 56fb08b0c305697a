#include "io/base/atomic_file.h"

#include <utility>

#include "io/base/file_error.h"

namespace posenc::io {
namespace {

template <typename F>
decltype(auto) with_weights_errors(F f) {
  try {
    return f();
  } catch (const platform::FileError& error) {
    throw weights_error(error);
  }
}

}  // namespace

AtomicFile::AtomicFile(const std::string& path)
    : file_(with_weights_errors([&] { return platform::AtomicFile(path); })) {}

void AtomicFile::write(const void* data, std::size_t count) {
  with_weights_errors([&] { file_.write(data, count); });
}

void AtomicFile::commit() {
  with_weights_errors([&] { file_.commit(); });
}

}  // namespace posenc::io
