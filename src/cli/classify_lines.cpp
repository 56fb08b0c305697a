#include "cli/classify_lines.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "cli/error.h"
#include "cli/text_lines.h"
#include "cli/text_model.h"

namespace posenc::cli {
namespace {

using Json = nlohmann::ordered_json;

// The bytes of characters [begin, end) of a text in UTF-8.
std::string characters(const std::string& text, int64_t begin, int64_t end) {
  std::string found;
  int64_t number = -1;
  for (const char byte : text) {
    if ((static_cast<unsigned char>(byte) & 0xC0) != 0x80) ++number;
    if (number >= begin && number < end) found += byte;
  }
  return found;
}

std::string prompt_of(const CrossEncoderFolder& folder, const PromptOptions& given) {
  if (given.text) return *given.text;
  const auto& name = given.name ? given.name : folder.default_prompt_name;
  return name ? named_prompt(folder.prompts, *name) : "";
}

// What a model makes of texts.
class Labeller {
 public:
  explicit Labeller(const ClassifyOptions& options)
      : model_(options.folder), prompt_(prompt_of(model_.folder(), options.prompt)) {
    const auto& labels = classifier().labels();
    const std::set<std::string> different(labels.begin(), labels.end());
    if (labels.empty()) {
      fail("{} must be a model with labels for sequences or tokens", options.folder);
    }
    if (is_of_tokens()) {
      if (options.pair)
        fail("{} has labels for tokens of one text; --pair is not for it", options.folder);
    } else if (different.size() != labels.size()) {
      fail("{}: id2label must have different labels", options.folder);
    }
    if (is_of_tokens() && !prompt_.empty()) {
      fail("{} has labels for tokens of a text; a prompt is not for it", options.folder);
    }
  }

  int64_t most_texts(int64_t wanted) const { return model_.most_texts(wanted); }

  // A line of output for each text.
  std::vector<std::string> label(const std::vector<TextInput>& texts) const {
    std::vector<Encoding> tokens;
    for (const TextInput& text : texts) {
      tokens.push_back(model_.tokens({prompt_ + text.text, text.second, text.is_pair}));
    }
    const auto [ids, inputs] = model_.batch(tokens);
    const torch::Tensor scores = scores_of(model_.model().forward(ids, inputs).logits);
    std::vector<std::string> lines;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const torch::Tensor row = scores[static_cast<int64_t>(i)];
      lines.push_back(
          (is_of_tokens() ? of_tokens(texts[i], tokens[i], row) : of_sequence(row)).dump());
    }
    return lines;
  }

 private:
  const ClassifierOptions& classifier() const { return model_.model().options(); }
  bool is_of_tokens() const { return classifier().kind() == head::Kind::Token; }

  torch::Tensor scores_of(const torch::Tensor& logits) const {
    const auto& stored = model_.folder().activation;
    if (stored && !is_of_tokens()) return functional::elementwise(logits, *stored);
    return class_probabilities(classifier(), logits);
  }

  Json best_of(const torch::Tensor& scores) const {
    const auto best = scores.argmax(-1).item<int64_t>();
    return {{"label", classifier().labels()[static_cast<std::size_t>(best)]},
            {"score", scores[best].item<float>()}};
  }

  Json of_sequence(const torch::Tensor& scores) const {
    Json out = best_of(scores), all = Json::object();
    const auto& labels = classifier().labels();
    for (std::size_t i = 0; i < labels.size(); ++i) {
      all[labels[i]] = scores[static_cast<int64_t>(i)].item<float>();
    }
    out["scores"] = all;
    return out;
  }

  Json of_tokens(const TextInput& input, const Encoding& tokens,
                 const torch::Tensor& scores) const {
    Json list = Json::array();
    for (std::size_t i = 0; i < tokens.ids.size(); ++i) {
      if (tokens.special_tokens_mask[i] != 0) continue;
      const auto [begin, end] = tokens.offsets[i];
      Json one = {{"text", characters(input.text, begin, end)}};
      one.update(best_of(scores[static_cast<int64_t>(i)]));
      one["begin"] = begin;
      one["end"] = end;
      list.push_back(one);
    }
    return {{"tokens", list}};
  }

  TextModel model_;
  std::string prompt_;  // before the first text
};

}  // namespace

void classify_lines(const ClassifyOptions& options) {
  const torch::NoGradGuard no_grad;
  const Labeller labeller(options);
  const auto most = static_cast<std::size_t>(labeller.most_texts(options.batch));
  LineReader reader(options.file, kLongestText);
  std::string line;
  std::vector<TextInput> texts;
  while (true) {
    const bool is_due = !texts.empty() && (texts.size() == most || !reader.is_ready());
    const bool has_line = !is_due && reader.next(line);
    if (has_line) {
      if (options.pair) {
        const auto [text, second] = split_pair(reader, line);
        texts.push_back({std::string(text), std::string(second), true});
      } else {
        texts.push_back({line, "", false});
      }
      continue;
    }
    for (const std::string& out : labeller.label(texts)) fmt::print("{}\n", out);
    std::fflush(stdout);
    texts.clear();
    if (!is_due) return;
  }
}

}  // namespace posenc::cli
