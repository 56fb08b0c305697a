#pragma once

#include <filesystem>

#include "support/temp_dir.h"

namespace posenc::testing {

/// Changes to a new temporary folder, which the destructor leaves and removes.
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
