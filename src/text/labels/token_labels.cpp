// TextClassifier::label_tokens(): TokenClassificationPipeline of transformers.

#include <ATen/ops/tensor.h>

#include <algorithm>

#include "text/labels/parts.h"
#include "tokenizers/pipeline/character_bytes.h"
#include "tokenizers/tokenizer_access.h"

namespace posenc::text {
namespace {

using labels::Aggregation;

// A token, or a word of several, before its label is decided.
struct Labelled {
  std::size_t label;  // its index
  float score;
  std::string word;
  int64_t index;  // of the first token
  int64_t begin = 0, end = 0;
  bool continues_word = false;
  const float* probabilities;
};

// The tokens of a text, and what it takes to tell words and phrases among them.
class TextLabels {
 public:
  TextLabels(const TextClassifierParts& parts, const std::string& text,
             const TokenLabelOptions& options)
      : parts_(parts),
        pipeline_(TokenizerAccess::loaded(parts.tokenizer).pipeline()),
        labels_(parts.model.options().labels()),
        characters_(text),
        options_(options) {}

  // Adds the labels of a row with the probabilities (L, labels).
  void add(const TextRows::Row& row, const float* probabilities) {
    std::vector<Labelled> tokens;
    for (std::size_t i = row.begin; i < row.end; ++i) {
      const float* own = probabilities + (i - row.begin) * labels_.size();
      if (row.tokens.special_tokens_mask[i] == 0) tokens.push_back(token_of(row, i, own));
    }
    if (options_.aggregation() == Aggregation::None) {
      for (const Labelled& token : tokens)
        keep(labels_[token.label], token, token.score, token.end);
    } else if (options_.aggregation() == Aggregation::Simple) {
      add_phrases(tokens);
    } else {
      add_phrases(words_of(tokens));
    }
    ++rows_;
  }

  std::vector<TokenLabel> found() {
    if (rows_ > 1) keep_longest();
    return std::move(found_);
  }

 private:
  Labelled token_of(const TextRows::Row& row, std::size_t i, const float* probabilities) const {
    const uint32_t id = row.tokens.ids[i];
    Labelled token = of_probabilities(probabilities);
    token.word = pipeline_.id_to_token(id).value_or("");
    token.index = static_cast<int64_t>(i - row.begin);
    if (!pipeline_.has_offsets()) return token;
    token.begin = row.tokens.offsets[i].begin;
    token.end = row.tokens.offsets[i].end;
    const std::string_view own = characters_.slice(token.begin, token.end);
    token.continues_word =
        pipeline_.marks_subwords()
            ? CharacterBytes(token.word).count() != CharacterBytes(own).count()
            : token.begin > 0 && characters_.slice(token.begin - 1, token.begin + 1).find(' ') ==
                                     std::string_view::npos;
    if (parts_.tokenizer.special_token_id("unk_token") == int64_t{id}) {
      token.word = own;
      token.continues_word = false;
    }
    return token;
  }

  Labelled of_probabilities(const float* probabilities) const {
    const float* best = std::max_element(probabilities, probabilities + labels_.size());
    return {.label = static_cast<std::size_t>(best - probabilities),
            .score = *best,
            .word = {},
            .index = 0,
            .probabilities = probabilities};
  }

  // Words with the labels that the aggregation gives them.
  std::vector<Labelled> words_of(const std::vector<Labelled>& tokens) {
    std::vector<Labelled> words;
    for (auto begin = tokens.begin(); begin != tokens.end();) {
      const auto end = std::find_if(begin + 1, tokens.end(),
                                    [](const Labelled& token) { return !token.continues_word; });
      words.push_back(word_of({begin, end}));
      begin = end;
    }
    return words;
  }

  Labelled word_of(const std::vector<Labelled>& tokens) {
    Labelled word = tokens.front();
    if (options_.aggregation() == Aggregation::Max) {
      word =
          *std::max_element(tokens.begin(), tokens.end(),
                            [](const Labelled& a, const Labelled& b) { return a.score < b.score; });
    } else if (options_.aggregation() == Aggregation::Average) {
      std::vector<float> mean(labels_.size());
      for (std::size_t label = 0; label < mean.size(); ++label) {
        for (const Labelled& token : tokens) mean[label] += token.probabilities[label];
        mean[label] /= static_cast<float>(tokens.size());
      }
      word = of_probabilities(mean.data());
      word.probabilities = nullptr;
    }
    word.word = joined(tokens);
    word.index = tokens.front().index;
    word.begin = tokens.front().begin;
    word.end = tokens.back().end;
    return word;
  }

  std::string joined(const std::vector<Labelled>& tokens) const {
    std::vector<std::string> words;
    for (const Labelled& token : tokens) words.push_back(token.word);
    return pipeline_.join(std::move(words));
  }

  // Neighbours of one label are a phrase.
  void add_phrases(const std::vector<Labelled>& words) {
    const auto tag = [&](const Labelled& word) {
      const std::string& label = labels_[word.label];
      return label.starts_with("B-") || label.starts_with("I-") ? label.substr(2) : label;
    };
    for (auto begin = words.begin(); begin != words.end();) {
      auto end = begin + 1;
      while (end != words.end() && tag(*end) == tag(*begin) &&
             !labels_[end->label].starts_with("B-")) {
        ++end;
      }
      const std::vector<Labelled> phrase(begin, end);
      float sum = 0.0F;
      for (const Labelled& word : phrase) sum += word.score;
      Labelled first = *begin;
      first.word = joined(phrase);
      const std::string& label = labels_[begin->label];
      keep(label.substr(label.find('-') + 1), first, sum / static_cast<float>(phrase.size()),
           phrase.back().end);
      begin = end;
    }
  }

  void keep(const std::string& label, const Labelled& word, float score, int64_t end) {
    const auto& ignored = options_.ignore_labels();
    if (std::find(ignored.begin(), ignored.end(), label) != ignored.end()) return;
    TokenLabel found = {.label = label,
                        .score = score,
                        .word = word.word,
                        .index = word.index,
                        .span = std::nullopt};
    if (pipeline_.has_offsets())
      found.span = TextSpan{word.begin, end, characters_(word.begin), characters_(end)};
    found_.push_back(std::move(found));
  }

  // Of labels that windows have in common, the longest; of these the most certain.
  void keep_longest() {
    const auto begins_before = [](const TokenLabel& a, const TokenLabel& b) {
      return a.span->begin < b.span->begin;
    };
    std::stable_sort(found_.begin(), found_.end(), begins_before);
    std::vector<TokenLabel> kept;
    for (TokenLabel& label : found_) {
      if (kept.empty() || label.span->begin >= kept.back().span->end) {
        kept.push_back(std::move(label));
        continue;
      }
      const int64_t own = label.span->end - label.span->begin;
      const int64_t other = kept.back().span->end - kept.back().span->begin;
      if (own > other || (own == other && label.score > kept.back().score))
        kept.back() = std::move(label);
    }
    found_ = std::move(kept);
  }

  const TextClassifierParts& parts_;
  const TextPipeline& pipeline_;
  const std::vector<std::string>& labels_;
  CharacterBytes characters_;
  const TokenLabelOptions& options_;
  std::size_t rows_ = 0;
  std::vector<TokenLabel> found_;
};

void check_options(const TextClassifierParts& parts, const TokenLabelOptions& options) {
  check_kind(parts, head::Kind::Token, "label_tokens()");
  check_positive("TextClassifier", "batch_size", options.batch_size());
  const bool has_offsets = parts.tokenizer.has_offsets();
  const bool joins_words =
      options.aggregation() != Aggregation::None && options.aggregation() != Aggregation::Simple;
  TORCH_CHECK_VALUE(has_offsets || !joins_words, kClassifier,
                    "aggregation must be None or Simple for a tokenizer without offsets, which "
                    "knows no words");
  if (!options.stride()) return;
  TORCH_CHECK_VALUE(options.aggregation() != Aggregation::None, kClassifier,
                    "stride needs another aggregation than None");
  TORCH_CHECK_VALUE(has_offsets, kClassifier, "stride needs a tokenizer with offsets");
}

}  // namespace

std::vector<std::vector<TokenLabel>> label_tokens(const TextClassifierParts& parts,
                                                  const std::vector<std::string>& texts,
                                                  const TokenLabelOptions& options) {
  check_options(parts, options);
  TokenizerOptions requested = parts.rules.options;
  if (options.stride()) requested.stride(*options.stride()).overflow(true);
  const Requested with_offsets = {.offsets = parts.tokenizer.has_offsets()};
  std::vector<std::vector<TokenLabel>> all(texts.size());
  each_batch(texts, options.batch_size(), "", [&](const auto& indices, const auto& batch) {
    const TextRows rows(parts.tokenizer, batch, requested, with_offsets);
    std::vector<at::Tensor> probabilities(rows.size());
    for (const ModelBatch& own : model_batches(parts.rules, rows.batch(), options.batch_size())) {
      const at::Tensor logits = parts.model.forward(own.ids, own.inputs).logits;
      const at::Tensor scores = class_probabilities(parts.model.options(), logits);
      for (std::size_t i = 0; i < own.rows.size(); ++i) {
        probabilities[static_cast<std::size_t>(own.rows[i])] =
            scores[static_cast<int64_t>(i)].contiguous();
      }
    }
    for (std::size_t i = 0; i < rows.size();) {
      const std::size_t text = rows.row(i).text;
      TextLabels found(parts, batch[text], options);
      for (; i < rows.size() && rows.row(i).text == text; ++i)
        found.add(rows.row(i), probabilities[i].const_data_ptr<float>());
      all[static_cast<std::size_t>(indices[text])] = found.found();
    }
    if (!options.stride()) rows.tell_cut(indices, options.on_truncated());
  });
  return all;
}

}  // namespace posenc::text
