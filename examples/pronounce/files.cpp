#include "files.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "messages.h"

namespace pronounce {

void write_file(const std::string& path, const std::string& content) {
  const std::string temporary = path + ".tmp";
  std::FILE* file = std::fopen(temporary.c_str(), "wb");
  if (file == nullptr) fail("{}: {}", path, std::strerror(errno));
  bool written = std::fwrite(content.data(), 1, content.size(), file) == content.size();
  written = written && std::fflush(file) == 0 && ::fsync(::fileno(file)) == 0;
  int error = errno;
  if (std::fclose(file) != 0 && written) {
    error = errno;
    written = false;
  }
  if (written && std::rename(temporary.c_str(), path.c_str()) == 0) return;
  if (written) error = errno;
  std::remove(temporary.c_str());
  fail("{}: {}", path, std::strerror(error));
}

}  // namespace pronounce
