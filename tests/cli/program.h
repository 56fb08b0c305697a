#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "posenc/weights/state_dict.h"
#include "support/temp_dir.h"

namespace posenc::testing {

/// The result of running a program.
struct Result {
  int status;  ///< exit status, or 128 + the signal's number
  std::string out, err;
};

/// Runs the built `posenc` with these arguments.
Result posenc(const std::vector<std::string>& arguments);

/// Runs any program.
Result run_program(const std::vector<std::string>& command);

/// run_program() for a program that uses LibTorch, which is loaded only for its first run
/// (fork_server.cpp).
Result run_loaded(const std::vector<std::string>& command);

/// Gives each test its own temporary folder.
class InFolder : public ::testing::Test {
 protected:
  std::string file(const std::string& name) const { return folder_ / name; }
  /// Writes `tensors` as `name` and returns its path.
  std::string safetensors(const std::string& name, const StateDict& tensors) const;
  std::string text_file(const std::string& name, const std::string& content) const;
  /// Names of the files in the folder, sorted.
  std::vector<std::string> names() const;

  TempDir folder_;
};

StateDict dict(const std::vector<std::pair<std::string, at::Tensor>>& entries);

/// Expects that the input was rejected: status 1, nothing on stdout, and one message on stderr that
/// begins with `posenc <subcommand>: `, contains `text` and no C++ details.
void expect_refused(const Result& result, const std::string& subcommand, const std::string& text);
/// The same for any program; the message begins with `program`.
void expect_refused_by(const std::string& program, const Result& result, const std::string& text);

}  // namespace posenc::testing
