#pragma once

#include <gtest/gtest.h>

#include <string>

#include "support/temp_dir.h"

namespace posenc::testing {

/// Runs a Python script in `dir`, with the Python of LibTorch. Fails with what it printed. All
/// scripts of a test program are forks of one process, so that torch is imported once.
::testing::AssertionResult run_python(const TempDir& dir, const std::string& script);

/// Whether that Python can import all of `modules` ("torch, safetensors").
bool python_has(const std::string& modules);

}  // namespace posenc::testing
