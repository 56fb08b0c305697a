#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/text_lines.h"
#include "posenc/text/text_classifier.h"

namespace posenc::cli {

/// Throws CommandError if the folder's config.json names a model with another head than those that
/// a command is for.
void refuse_other_heads(const std::string& command, const std::string& folder,
                        const LoadOptions& load, const std::vector<head::Kind>& kinds);

/// The lines that were cut to what a model takes; says at the end, once, how many there were.
class CutLines {
 public:
  CutLines(std::string command, std::optional<int64_t> most_tokens)
      : command_(std::move(command)), most_tokens_(most_tokens) {}
  ~CutLines();
  CutLines(const CutLines&) = delete;
  CutLines& operator=(const CutLines&) = delete;

  /// The most tokens, where they are known only after this has been made.
  void set_most(std::optional<int64_t> tokens) { most_tokens_ = tokens; }
  /// Counts a line, for `on_truncated` of options.
  std::function<void(int64_t)> count() {
    return [this](int64_t) { ++count_; };
  }

 private:
  std::string command_;
  std::optional<int64_t> most_tokens_;
  int64_t count_ = 0;
};

}  // namespace posenc::cli
