#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>

namespace posenc::testing {

/// Works in a fresh temporary folder until the end of its life, and removes it.
class InEmptyFolder {
 public:
  InEmptyFolder() : before_(std::filesystem::current_path()) {
    std::string path = (std::filesystem::temp_directory_path() / "posenc.XXXXXX").string();
    folder_ = ::mkdtemp(path.data());
    std::filesystem::current_path(folder_);
  }
  ~InEmptyFolder() {
    std::filesystem::current_path(before_);
    std::filesystem::remove_all(folder_);
  }
  InEmptyFolder(const InEmptyFolder&) = delete;
  InEmptyFolder& operator=(const InEmptyFolder&) = delete;

 private:
  std::filesystem::path before_, folder_;
};

}  // namespace posenc::testing
