#include "cli/translate/vocabulary.h"

#include <utility>

#include "cli/error.h"
#include "io/base/file.h"
#include "io/base/json.h"
#include "io/base/text.h"

namespace posenc::cli {
namespace {

constexpr uint64_t kLongestVocabulary = 64'000'000;  // in bytes
constexpr uint64_t kMostIds = 1 << 24;

// Handles one flat object of names and integers.
class VocabularyHandler : public io::JsonHandler {
 public:
  VocabularyHandler(const std::string& path, std::unordered_map<std::string, int64_t>& ids,
                    std::unordered_map<int64_t, const std::string*>& tokens)
      : path_(path), ids_(ids), tokens_(tokens) {}

  void start_object() override {
    if (std::exchange(started_, true)) wrong("an object");
  }
  bool key(std::string& name) override {
    token_ = std::move(name);
    return true;
  }
  void number(uint64_t value) override {
    if (!started_ || value >= kMostIds) wrong(std::to_string(value));
    const auto [place, is_new] = ids_.emplace(std::move(token_), static_cast<int64_t>(value));
    if (!is_new) fail("{}: the token {} occurs twice", path_, io::in_quotes(place->first));
    tokens_[place->second] = &place->first;  // if several have the same id, the last, as in Python
  }
  void end_object() override {}
  void start_array() override { wrong("an array"); }
  void end_array() override {}
  void string(std::string& text) override { wrong(io::in_quotes(text)); }
  void other(const std::string& text) override { wrong(text); }

 private:
  [[noreturn]] void wrong(const std::string& got) const {
    fail("{}: must be an object of tokens and ids below {}. Got {}", path_, kMostIds, got);
  }

  const std::string& path_;
  std::unordered_map<std::string, int64_t>& ids_;
  std::unordered_map<int64_t, const std::string*>& tokens_;
  std::string token_;
  bool started_ = false;
};

}  // namespace

Vocabulary::Vocabulary(const std::string& path) {
  const std::string text = io::read_text(path, kLongestVocabulary);
  VocabularyHandler handler(path, ids_, tokens_);
  io::in_file(path, [&] { io::parse_json(text, "a vocabulary", handler); });
  for (const auto& [token, id] : ids_) largest_id_ = std::max(largest_id_, id);
}

std::optional<int64_t> Vocabulary::id(const std::string& token) const {
  const auto found = ids_.find(token);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

const std::string* Vocabulary::token(int64_t id) const {
  const auto found = tokens_.find(id);
  return found == tokens_.end() ? nullptr : found->second;
}

}  // namespace posenc::cli
