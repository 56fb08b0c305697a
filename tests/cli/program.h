#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "posenc/io/state_dict.h"
#include "support/temp_dir.h"

namespace posenc::testing {

/// What a run of a program left behind.
struct Result {
  int status;  ///< exit status, or 128 + the signal's number
  std::string out, err;
};

/// Runs the built `posenc` with these arguments; `path` replaces PATH where it is not empty.
Result posenc(const std::vector<std::string>& arguments, const std::string& path = "");

/// Runs any program.
Result run_program(const std::vector<std::string>& command, const std::string& path = "");

/// A folder of its own for each test, removed after it.
class InFolder : public ::testing::Test {
 protected:
  std::string file(const std::string& name) const { return folder_ / name; }
  /// Writes `tensors` as `name` and returns its path.
  std::string safetensors(const std::string& name, const StateDict& tensors) const;
  std::string text_file(const std::string& name, const std::string& content) const;
  /// Names in the folder, sorted.
  std::vector<std::string> names() const;

  TempDir folder_;
};

StateDict dict(const std::vector<std::pair<std::string, at::Tensor>>& entries);

/// A refusal: status 1, one message on stderr that begins with `posenc <subcommand>: `, contains
/// `text` and shows no trace of C++, and nothing on stdout.
void expect_refused(const Result& result, const std::string& subcommand, const std::string& text);
/// The same of any program, whose messages begin with `program`.
void expect_refused_by(const std::string& program, const Result& result, const std::string& text);

/// The TorchScript files of the notebooks' classes: made live by Python, and the committed ones.
std::vector<std::string> script_files();

/// Saves a TorchScript module of class `name` whose tensors (parameters, nested by their dots) are
/// `tensors` and whose methods are `source`.
void save_script(const std::string& path, const std::string& name, const StateDict& tensors,
                 const std::string& source);

}  // namespace posenc::testing
