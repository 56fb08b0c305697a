#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "cli/program.h"
#include "models/marian/live.h"
#include "weights/files.h"

namespace posenc::testing {

using nlohmann::json;

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// posenc translate with the small Marian models of the tests, and changed copies of them.
class Translate : public InFolder {
 protected:
  // Runs the command on a file with this text.
  Result translate(const std::string& model, const std::string& text,
                   std::vector<std::string> more = {}) const {
    std::vector<std::string> command = {"translate", "--model", model,
                                        "--threads", "1",       text_file("lines.txt", text)};
    command.insert(command.end(), more.begin(), more.end());
    return posenc(command);
  }
  // A copy of the model's folder, to be modified.
  std::string copy(const std::string& model) const {
    std::filesystem::copy(marian_path(model), file(model));
    return file(model);
  }
  static void set(const std::string& path, const std::string& key, const json& value) {
    auto all = json::parse(read_bytes(path));
    all[key] = value;
    write_bytes(path, all.dump());
  }
  // A bad line ends the command, after the lines before it have been answered.
  void expect_refused_text(const std::string& text, const std::string& message,
                           const std::string& answered = "") const {
    auto result = translate(marian_path("shared"), text);
    EXPECT_EQ(result.out, answered);
    result.out.clear();
    expect_refused(result, "translate", message);
  }
};

}  // namespace posenc::testing
