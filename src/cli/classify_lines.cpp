#include "cli/classify_lines.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "cli/error.h"
#include "cli/label_lines.h"
#include "cli/print.h"
#include "cli/weights.h"

namespace posenc::cli {
namespace {

using Json = nlohmann::ordered_json;
using Pairs = std::vector<std::pair<std::string, std::string>>;

void check_sequence_options(const TextClassifier& model, const ClassifyOptions& options) {
  const std::set<std::string> different(model.labels().begin(), model.labels().end());
  if (different.size() != model.labels().size())
    fail("{}: id2label must have different labels", options.folder);
  if (options.aggregation != labels::Aggregation::None || options.stride)
    fail("{} has one label for a text; --aggregation and --stride are for labels of tokens",
         options.folder);
}

void check_token_options(const ClassifyOptions& options) {
  const auto refuse = [&](const char* what) {
    fail("{} has labels for tokens of one text; {} is not for it", options.folder, what);
  };
  if (options.pair) refuse("--pair");
  if (options.top) refuse("--top");
  const auto& prompt = options.prompt;
  if (!prompt.text.value_or("").empty() || !prompt.name.value_or("").empty()) refuse("a prompt");
}

Json json_of(const std::vector<LabelScore>& best, const std::vector<std::string>& order) {
  Json all = Json::object();
  for (const std::string& label : order) all[label] = nullptr;
  for (const LabelScore& one : best) all[one.label] = one.score;
  return {{"label", best.front().label}, {"score", best.front().score}, {"scores", all}};
}

void classify_texts(const TextClassifier& model, const ClassifyOptions& options) {
  check_sequence_options(model, options);
  CutLines cut("classify", model.max_seq_length());
  const auto requested = TextClassifyOptions()
                             .top_k(options.top)
                             .prompt_name(options.prompt.name)
                             .prompt(options.prompt.text)
                             .batch_size(options.batch)
                             .on_truncated(cut.count());
  const auto write = [&](const std::vector<std::vector<LabelScore>>& labels) {
    const std::vector<std::string> order =
        options.top ? std::vector<std::string>() : model.labels();
    for (const auto& best : labels) print("{}\n", json_of(best, order).dump());
  };
  write(model.classify({}, requested));  // refuses options before it waits for texts
  if (!options.pair) {
    each_lines<std::string>(
        options.file, options.batch,
        [](const LineReader&, const std::string& line) { return line; },
        [&](const std::vector<std::string>& texts) { write(model.classify(texts, requested)); });
  } else {
    each_lines<Pairs::value_type>(options.file, options.batch, split_pair, [&](const Pairs& pairs) {
      write(model.classify_pairs(pairs, requested));
    });
  }
}

Json json_of(const TokenLabel& one, const std::string& text) {
  Json out = {{"text", one.word}, {"label", one.label}, {"score", one.score}};
  out["begin"] = nullptr;
  out["end"] = nullptr;
  if (one.span) {
    const auto begin = static_cast<std::size_t>(one.span->byte_begin);
    out["text"] = text.substr(begin, static_cast<std::size_t>(one.span->byte_end) - begin);
    out["begin"] = one.span->begin;
    out["end"] = one.span->end;
  }
  return out;
}

void label_tokens(const TextClassifier& model, const ClassifyOptions& options) {
  check_token_options(options);
  CutLines cut("classify", model.max_seq_length());
  const bool is_joined = options.aggregation != labels::Aggregation::None;
  const auto requested =
      TokenLabelOptions()
          .aggregation(options.aggregation)
          .ignore_labels(is_joined ? std::vector<std::string>{"O"} : std::vector<std::string>{})
          .stride(options.stride)
          .batch_size(options.batch)
          .on_truncated(cut.count());
  model.label_tokens({}, requested);
  each_lines<std::string>(
      options.file, options.batch, [](const LineReader&, const std::string& line) { return line; },
      [&](const std::vector<std::string>& texts) {
        const auto labels = model.label_tokens(texts, requested);
        for (std::size_t i = 0; i < texts.size(); ++i) {
          Json list = Json::array();
          for (const TokenLabel& one : labels[i]) list.push_back(json_of(one, texts[i]));
          print("{}\n", Json{{"tokens", list}}.dump());
        }
      });
}

}  // namespace

void classify_lines(const ClassifyOptions& options) {
  refuse_other_heads("classify", options.folder, options.load,
                     {head::Kind::Sequence, head::Kind::Token});
  LoadReport report;
  const TextClassifier model = load_text_classifier(options.folder, options.freezing,
                                                    LoadOptions(options.load).report(&report));
  note_unexpected("classify", report);
  if (model.kind() == head::Kind::Token) {
    label_tokens(model, options);
  } else {
    classify_texts(model, options);
  }
}

}  // namespace posenc::cli
