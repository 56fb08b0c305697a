#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "io/files.h"

namespace posenc::testing {

/// Runs a Python script in `dir`, with the Python that LibTorch was found in; its output, or an
/// AssertionFailure with the errors that it printed.
inline ::testing::AssertionResult run_python(const TempDir& dir, const std::string& script) {
  write_bytes(dir / "script.py", script);
  const std::string command = "cd '" + dir.path().string() + "' && '" + POSENC_PYTHON +
                              "' -W ignore script.py > python.log 2>&1";
  if (std::system(command.c_str()) == 0) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << read_bytes(dir / "python.log");
}

/// Whether that Python can import all of `modules` ("torch, safetensors").
inline bool python_has(const std::string& modules) {
  const std::string command =
      std::string("'") + POSENC_PYTHON + "' -c 'import " + modules + "' > /dev/null 2>&1";
  return std::system(command.c_str()) == 0;
}

}  // namespace posenc::testing
