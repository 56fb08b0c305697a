#include "text/sentence/text_rows.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "inference/rows/frozen_call.h"
#include "models/encoder/parts.h"
#include "tokenizers/tokenizer_access.h"

namespace posenc::text {
namespace {

using encoder::Pooling;

// The first texts of pairs, or the second ones.
std::vector<std::string_view> views_of(const std::vector<TextPair>& pairs,
                                       std::string TextPair::*text) {
  std::vector<std::string_view> views;
  views.reserve(pairs.size());
  for (const TextPair& pair : pairs) views.emplace_back(pair.*text);
  return views;
}

bool has_types(const EncoderOptions& options) {
  const EncoderEmbeddingsOptions& embeddings = *options.embeddings();
  const auto& transformer_xl = options.encoder().layer().transformer_xl();
  return embeddings.type_vocab_size() > 0 || embeddings.types_from_tokens() ||
         (transformer_xl && transformer_xl->segments());
}

// Whether the row that stands for a sequence is found by counting, padding included.
bool counts_padding(const ClassifierOptions& options) {
  if (options.head().rows() == head::Rows::MeanOfRows) return true;
  if (options.head().rows() != head::Rows::Pooled) return false;
  const Pooling pooling = options.encoder().pooling();
  return pooling == Pooling::Last || pooling == Pooling::LinearOfLast || pooling == Pooling::Mean ||
         pooling == Pooling::NormOfMean || pooling == Pooling::Attention;
}

// Whether that row, or the first id of a decoder, is found by ids that are not padding to the
// model.
bool finds_padding(const ClassifierOptions& options) {
  if (options.encoder().transformer()) return true;
  return options.head().rows() == head::Rows::Pooled &&
         options.encoder().pooling() == Pooling::LastToken;
}

ModelBatch part_of(const RowRules& rules, const TokenBatch& batch, std::vector<int64_t> rows,
                   const int64_t* lengths, const at::Tensor& added) {
  const auto count = static_cast<int64_t>(rows.size());
  int64_t longest = 0, shortest = INT64_MAX;
  for (const int64_t row : rows) {
    longest = std::max(longest, lengths[row]);
    shortest = std::min(shortest, lengths[row]);
  }
  ModelBatch part;
  if (longest == 0) {  // a model takes no sequence of no tokens
    part.ids = at::zeros({count, 1}, at::kLong);
    part.mask = at::zeros({count, 1}, at::kLong);
    part.inputs.attention_mask(part.mask);
    part.rows = std::move(rows);
    return part;
  }
  const bool has_all = count == batch.input_ids.size(0);
  const at::Tensor index = has_all ? at::Tensor() : at::tensor(rows, at::kLong);
  const auto own = [&](const at::Tensor& x) {
    const at::Tensor chosen = has_all ? x : x.index_select(0, index);
    return chosen.size(1) == longest ? chosen : chosen.narrow(1, 0, longest).contiguous();
  };
  part.ids = own(batch.input_ids);
  const at::Tensor mask = own(batch.attention_mask);
  const bool is_padded = shortest < longest;
  if (is_padded && rules.padding_id) part.ids = part.ids.masked_fill(mask.eq(0), *rules.padding_id);
  part.inputs.attention_mask(mask);
  if (rules.takes_types) part.inputs.token_type_ids(own(batch.token_type_ids));
  if (is_padded) part.mask = mask;
  if (added.defined()) part.added = own(added);
  part.rows = std::move(rows);
  return part;
}

}  // namespace

RowRules row_rules(const Tokenizer& tokenizer, const EncoderOptions& options,
                   std::optional<int64_t> max_length) {
  RowRules rules;
  rules.options.padding_side(tokenizer::Side::Right);
  if (max_length)
    rules.options.truncation(tokenizer::Truncation::LongestFirst).max_length(*max_length);
  rules.takes_types = tokenizer.has_types() && has_types(options);
  rules.needs_equal_lengths = sees_padding(options);
  rules.rotaries = rotaries_by_length(options);
  return rules;
}

RowRules row_rules(const Tokenizer& tokenizer, const ClassifierOptions& options,
                   std::optional<int64_t> max_length) {
  RowRules rules = row_rules(tokenizer, options.encoder(), max_length);
  rules.needs_equal_lengths = rules.needs_equal_lengths || counts_padding(options);
  if (!finds_padding(options)) return rules;
  const auto& padding = options.encoder().pad_token_id();
  if (!padding) {
    rules.most_rows = 1;  // it would look for the id of padding in more
  } else if (*padding < 0 || *padding >= options.encoder().embeddings()->vocab_size()) {
    rules.needs_equal_lengths = true;  // there is no such token
  } else {
    rules.padding_id = padding;
  }
  return rules;
}

// What is not there is masked, so that any id does for it.
TextRows::TextRows(const Tokenizer& tokenizer, const std::vector<std::string_view>& texts,
                   const std::vector<std::string_view>& seconds, const TokenizerOptions& options,
                   const Requested& requested)
    : encoded_(tokenizers::with_tensor_errors([&] {
        return TokenizerAccess::encode(tokenizer, texts, seconds,
                                       tokenizers::with_tensor_threads(options),
                                       {.requested = requested, .needs_padding_token = false});
      })),
      batch_(tokenizers::to_tensors(encoded_)) {
  for (const EncodedRows& part : TokenizerAccess::parts(encoded_).parts) {
    for (std::size_t row = 0; row < part.ends.size(); ++row) rows_.emplace_back(&part, row);
  }
}

TextRows::TextRows(const Tokenizer& tokenizer, const std::vector<std::string>& texts,
                   const TokenizerOptions& options, const Requested& requested)
    : TextRows(tokenizer, {texts.begin(), texts.end()}, {}, options, requested) {}

TextRows::TextRows(const Tokenizer& tokenizer, const std::vector<TextPair>& pairs,
                   const TokenizerOptions& options, const Requested& requested)
    : TextRows(tokenizer, views_of(pairs, &TextPair::first), views_of(pairs, &TextPair::second),
               options, requested) {}

TextRows::Row TextRows::row(std::size_t i) const {
  const auto [part, row] = rows_[i];
  const EncodedRows& rows = *part;
  return {rows, rows.begin(row), rows.ends[row], rows.texts[row], rows.are_cut[row] != 0};
}

void TextRows::tell_cut(const std::vector<int64_t>& indices,
                        const std::function<void(int64_t)>& tell) const {
  if (!tell) return;
  const torch_internals::CallersThreads threads;
  for (std::size_t i = 0; i < size(); ++i) {
    if (row(i).is_cut) tell(indices[row(i).text]);
  }
}

std::vector<ModelBatch> model_batches(const RowRules& rules, const TokenBatch& batch,
                                      int64_t most_rows, const at::Tensor& added) {
  const at::Tensor lengths = batch.attention_mask.sum(1);
  const auto* length = lengths.const_data_ptr<int64_t>();
  std::map<int64_t, std::vector<int64_t>> groups;
  for (int64_t row = 0; row < lengths.size(0); ++row) {
    const int64_t group =
        rules.needs_equal_lengths ? length[row] : frequency_group(rules.rotaries, length[row]);
    groups[group].push_back(row);
  }
  const auto most = static_cast<std::ptrdiff_t>(std::min(most_rows, rules.most_rows));
  std::vector<ModelBatch> batches;
  for (const auto& [same, rows] : groups) {
    for (auto begin = rows.begin(); begin != rows.end();) {
      const auto end = begin + std::min(most, rows.end() - begin);
      batches.push_back(part_of(rules, batch, {begin, end}, length, added));
      begin = end;
    }
  }
  return batches;
}

void check_positive(const char* caller, const char* option, int64_t value) {
  TORCH_CHECK_VALUE(value > 0, "[", caller, "] ", option, " must be positive. Got ", value);
}

std::vector<std::vector<int64_t>> batches_by_size(const std::vector<std::size_t>& sizes,
                                                  int64_t batch_size) {
  std::vector<int64_t> order(sizes.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return sizes[static_cast<std::size_t>(a)] > sizes[static_cast<std::size_t>(b)];
  });
  std::vector<std::vector<int64_t>> batches;
  for (auto begin = order.begin(); begin != order.end();) {
    const auto end = begin + std::min<std::ptrdiff_t>(batch_size, order.end() - begin);
    batches.emplace_back(begin, end);
    begin = end;
  }
  return batches;
}

}  // namespace posenc::text
