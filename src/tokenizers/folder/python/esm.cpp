#include <unordered_map>

#include "tokenizers/folder/python/constructors.h"
#include "tokenizers/python/text.h"

namespace posenc::text {
namespace {

// The tokens are words, and those of the vocabulary are found within words too.
class EsmClass : public PythonClass {
 public:
  EsmClass(std::vector<std::string> lines, std::string unknown)
      : lines_(std::move(lines)), unknown_(std::move(unknown)) {
    for (std::size_t i = 0; i < lines_.size(); ++i) ids_[lines_[i]] = static_cast<uint32_t>(i);
  }

  void tokenize(std::string_view text, Scratch&, PythonTokens& tokens) const override {
    for (const std::string_view word : python::split(text)) tokens.add(word);
  }
  std::optional<uint32_t> find(std::string_view token) const override {
    const auto found = ids_.find(std::string(token));
    return found == ids_.end() ? std::nullopt : std::optional(found->second);
  }
  std::optional<uint32_t> unknown_id() const override { return find(unknown_); }
  std::optional<std::string> token(uint32_t id) const override {
    return id < lines_.size() ? lines_[id] : unknown_;
  }
  std::size_t size() const override { return ids_.size(); }

 private:
  std::vector<std::string> lines_;
  std::unordered_map<std::string, uint32_t> ids_;
  std::string unknown_;
};

}  // namespace

void construct_esm(PythonBuilder& builder) {
  std::vector<std::string> lines;
  const std::string text = builder.text_file("vocab.txt");
  for (const std::string_view line : python::lines(text))
    lines.emplace_back(python::stripped(line));
  const std::string unknown = PythonBuilder::text_of(builder.named("unk_token", "<unk>"));
  builder.named("cls_token", "<cls>");
  builder.named("pad_token", "<pad>");
  builder.named("mask_token", "<mask>");
  builder.named("eos_token", "<eos>");
  builder.finish(std::make_unique<EsmClass>(lines, unknown));
  for (const std::string& line : lines) builder.added().add_cut(line);
  builder.set_around(builder.around("cls_token A eos_token", "cls_token A eos_token B eos_token"));
}

}  // namespace posenc::text
