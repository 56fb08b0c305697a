// TextClassifier::fill(): FillMaskPipeline of transformers.

#include <ATen/ops/softmax.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/topk.h>

#include <algorithm>

#include "text/labels/parts.h"
#include "tokenizers/tokenizer_access.h"

namespace posenc::text {
namespace {

// The ids of the only tokens that are considered; none: all are.
std::vector<int64_t> target_ids(const TextClassifierParts& parts, const FillMaskOptions& options) {
  std::vector<int64_t> ids;
  const bool cuts_left = TokenizerAccess::loaded(parts.tokenizer).settings().truncates_left;
  for (const std::string& target : options.targets()) {
    auto id = parts.tokenizer.token_to_id(target);
    if (!id) {
      const auto tokens = parts.tokenizer.encode_ids(target, std::nullopt,
                                                     TokenizerOptions().add_special_tokens(false));
      // Cut to one token: the pipeline does so as the tokenizer cuts.
      if (!tokens.empty()) id = cuts_left ? tokens.back() : tokens.front();
    }
    if (id && std::find(ids.begin(), ids.end(), *id) == ids.end()) ids.push_back(*id);
  }
  TORCH_CHECK_VALUE(options.targets().empty() || !ids.empty(), kClassifier,
                    "targets must have a token of the vocabulary. Got no such token");
  return ids;
}

// A text's ids, and where its masks are.
struct MaskedText {
  std::vector<int64_t> ids, masks;
};

class Filler {
 public:
  Filler(const TextClassifierParts& parts, const FillMaskOptions& options)
      : parts_(parts),
        options_(options),
        mask_(parts.tokenizer.special_token_id("mask_token")),
        padding_(parts.tokenizer.special_token_id("pad_token")),
        targets_(target_ids(parts, options)) {
    TORCH_CHECK_VALUE(mask_.has_value(), kClassifier, "the tokenizer must have a mask_token");
  }

  MaskedText masked(const TextRows::Row& row, int64_t index) const {
    MaskedText text;
    text.ids.assign(row.tokens.ids.begin() + static_cast<std::ptrdiff_t>(row.begin),
                    row.tokens.ids.begin() + static_cast<std::ptrdiff_t>(row.end));
    for (std::size_t i = 0; i < text.ids.size(); ++i) {
      if (text.ids[i] == *mask_) text.masks.push_back(static_cast<int64_t>(i));
    }
    TORCH_CHECK_VALUE(!text.masks.empty(), kClassifier, "a text must have a mask, ",
                      parts_.tokenizer.id_to_token(*mask_).value_or(""),
                      row.is_cut ? ", in the part that the model takes" : "",
                      ". Got no mask at index ", index);
    return text;
  }

  // The tokens for each mask of a text, of the hidden states (L, D) of its ids.
  std::vector<std::vector<MaskedToken>> best(const MaskedText& text,
                                             const at::Tensor& hidden) const {
    const at::Tensor rows = hidden.index_select(0, at::tensor(text.masks, at::kLong));
    const at::Tensor logits = parts_.model.logits(rows);
    at::Tensor probabilities = at::softmax(logits, -1);
    if (!targets_.empty())
      probabilities = probabilities.index_select(1, at::tensor(targets_, at::kLong));
    const auto [scores, found] =
        at::topk(probabilities, std::min(options_.top_k(), probabilities.size(1)));
    std::vector<std::vector<MaskedToken>> all;
    for (std::size_t mask = 0; mask < text.masks.size(); ++mask) {
      const auto row = static_cast<int64_t>(mask);
      std::vector<MaskedToken> tokens;
      for (int64_t i = 0; i < found.size(1); ++i) {
        const auto index = found[row][i].item<int64_t>();
        const int64_t id = targets_.empty() ? index : targets_[static_cast<std::size_t>(index)];
        tokens.push_back({parts_.tokenizer.decode(std::vector<int64_t>{id}, false), id,
                          scores[row][i].item<float>(), sequence(text, text.masks[mask], id)});
      }
      all.push_back(std::move(tokens));
    }
    return all;
  }

 private:
  // The text with a token in place of one mask; others would be lost with the special tokens.
  std::string sequence(const MaskedText& text, int64_t mask, int64_t id) const {
    std::vector<int64_t> ids = text.ids;
    ids[static_cast<std::size_t>(mask)] = id;
    if (padding_) std::erase(ids, *padding_);
    return parts_.tokenizer.decode(ids, /*skip_special_tokens=*/text.masks.size() == 1);
  }

  const TextClassifierParts& parts_;
  const FillMaskOptions& options_;
  std::optional<int64_t> mask_, padding_;
  std::vector<int64_t> targets_;
};

}  // namespace

std::vector<std::vector<std::vector<MaskedToken>>> fill(const TextClassifierParts& parts,
                                                        const std::vector<std::string>& texts,
                                                        const FillMaskOptions& options) {
  check_kind(parts, head::Kind::Masked, "fill()");
  check_positive("TextClassifier", "batch_size", options.batch_size());
  check_positive("TextClassifier", "top_k", options.top_k());
  const Filler filler(parts, options);
  std::vector<std::vector<std::vector<MaskedToken>>> all(texts.size());
  each_batch(texts, options.batch_size(), "", [&](const auto& indices, const auto& batch) {
    const TextRows rows(parts.tokenizer, batch, parts.rules.options);
    std::vector<MaskedText> masked;
    for (std::size_t i = 0; i < rows.size(); ++i)
      masked.push_back(filler.masked(rows.row(i), indices[i]));
    for (const ModelBatch& own : model_batches(parts.rules, rows.batch(), options.batch_size())) {
      const at::Tensor hidden =
          parts.model.encoder().forward(own.ids, own.inputs).last_hidden_state;
      for (std::size_t i = 0; i < own.rows.size(); ++i) {
        const auto row = static_cast<std::size_t>(own.rows[i]);
        all[static_cast<std::size_t>(indices[row])] =
            filler.best(masked[row], hidden[static_cast<int64_t>(i)]);
      }
    }
    rows.tell_cut(indices, options.on_truncated());
  });
  return all;
}

}  // namespace posenc::text
