#pragma once

#include <filesystem>

#include "support/temp_dir.h"

namespace posenc::testing {

/// Works in a fresh temporary folder until the end of its life, and removes it.
class InEmptyFolder {
 public:
  InEmptyFolder() : before_(std::filesystem::current_path()) {
    std::filesystem::current_path(folder_.path());
  }
  ~InEmptyFolder() { std::filesystem::current_path(before_); }
  InEmptyFolder(const InEmptyFolder&) = delete;
  InEmptyFolder& operator=(const InEmptyFolder&) = delete;

 private:
  std::filesystem::path before_;
  TempDir folder_;
};

}  // namespace posenc::testing
