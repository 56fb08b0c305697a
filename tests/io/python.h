#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "io/files.h"

namespace posenc::testing {

/// Runs a Python script in `dir`, with the Python of LibTorch. Fails with the errors that it
/// printed.
inline ::testing::AssertionResult run_python(const TempDir& dir, const std::string& script) {
  write_bytes(dir / "script.py", script);
  const std::string command = fmt::format("cd '{}' && '{}' -W ignore script.py > python.log 2>&1",
                                          dir.path().string(), POSENC_PYTHON);
  if (std::system(command.c_str()) == 0) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << read_bytes(dir / "python.log");
}

/// Whether that Python can import all of `modules` ("torch, safetensors").
inline bool python_has(const std::string& modules) {
  const std::string command =
      fmt::format("'{}' -c 'import {}' > /dev/null 2>&1", POSENC_PYTHON, modules);
  return std::system(command.c_str()) == 0;
}

}  // namespace posenc::testing
