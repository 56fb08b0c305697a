#include "posenc/models/frozen_decoder.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <ostream>

#include "inference/generate/topk.h"
#include "inference/layers/module_parts.h"
#include "inference/rows/activation_rows.h"
#include "inference/rows/frozen_call.h"
#include "models/decoder/parts.h"
#include "models/decoder/token_runs.h"
#include "models/frozen/decoder_parts.h"
#include "models/options/values.h"

namespace posenc {
namespace inference {

const FrozenSource& source_of(const FrozenDecoder& frozen) {
  return FrozenDecoderAccess::parts(frozen)->source;
}
const StaleCheck& check_of(const FrozenDecoder& frozen) {
  return FrozenDecoderAccess::parts(frozen)->stale_check;
}
const FrozenEncoder& model_of(const FrozenDecoder& frozen) {
  return FrozenDecoderAccess::parts(frozen)->model;
}

at::Tensor FrozenDecoderParts::logits(const at::Tensor& rows, at::Tensor to) const {
  if (!to.defined()) to = at::empty({rows.size(0), head.out()}, at::kFloat);
  head.run(rows.const_data_ptr<float>(), rows.size(0), to.data_ptr<float>(),
           row_regime(rows.size(0)));
  if (options.logit_scale() != 1.0) to.mul_(options.logit_scale());
  if (const auto softcap = options.logit_softcap()) {
    to.div_(*softcap);
    activate_by_row(to, Activation::Tanh);
    to.mul_(*softcap);
  }
  return to;
}

at::Tensor FrozenDecoderParts::logits_in(const at::Tensor& rows,
                                         const std::vector<int64_t>& columns) const {
  const int64_t count = rows.size(0), in = head.in();
  const auto* const x = rows.const_data_ptr<float>();
  const at::Tensor memory =
      at::empty({ConvertedRows::floats(head.row_format(), count, in)}, at::kFloat);
  const ConvertedRows converted(head.row_format(), memory.data_ptr<float>(), count, in);
  if (converted) converted.convert(x, in, count);
  at::Tensor found = at::empty({count, std::ssize(columns)}, at::kFloat);
  for (int64_t i = 0; i < std::ssize(columns); ++i) {
    const int64_t begin = columns[i] / kPartColumns * kPartColumns;
    const ColumnPart part = {begin, std::min(begin + kPartColumns, head.out())};
    const at::Tensor products = at::empty({count, part.end - begin}, at::kFloat);
    head.run(x, in, converted, count, products.data_ptr<float>(), part.end - begin,
             row_regime(count), part);
    found.select(1, i).copy_(products.select(1, columns[i] - begin));
  }
  return scaled_logits(options, found);
}

namespace {

// Of the last token of each sequence.
at::Tensor ends_of(const at::Tensor& rows, const Packing& packing) {
  std::vector<int64_t> last;
  for (int64_t b = 0; b < packing.batch; ++b)
    last.push_back(packing.first[b] + packing.lengths[b] - 1);
  return rows.index_select(0, at::tensor(last, at::kLong));
}

}  // namespace
}  // namespace inference

DecoderOutput FrozenDecoder::forward(const torch::Tensor& ids, const DecoderInputs& inputs) const {
  using inference::Packing;
  const auto held = parts_;  // keeps it alive: another may be assigned to the handle meanwhile
  const inference::FrozenDecoderParts& parts = *held;
  const inference::FrozenCall call(parts.call);
  const TokenRuns runs = token_runs("FrozenDecoder", ids, inputs, parts.head.out());
  parts.check_unchanged();
  const Packing packing(runs.lengths, std::vector<int64_t>(runs.lengths.size(), 0));
  const Packing columns = packing.rows == ids.numel() ? Packing(ids.size(0), ids.size(1))
                                                      : Packing(inputs.attention_mask().ne(0));
  const auto found = inference::causal_rows(parts.model, packing.pack(runs.ids), packing, nullptr,
                                            inputs.output_hidden_states());
  DecoderOutput out;
  out.logits = inputs.last_logits_only()
                   ? parts.logits(inference::ends_of(found.hidden, packing)).unsqueeze(1)
                   : columns.unpack(parts.logits(found.hidden));
  out.last_hidden_state = columns.unpack(found.hidden);
  if (inputs.output_hidden_states()) out.hidden_states.push_back(columns.unpack(found.embeddings));
  for (const torch::Tensor& one : found.outputs) out.hidden_states.push_back(columns.unpack(one));
  return out;
}

const DecoderOptions& FrozenDecoder::options() const { return parts_->options; }
FrozenBytes FrozenDecoder::bytes() const {
  const FrozenBytes model = parts_->model.bytes(), head = parts_->stale_check.bytes();
  return {model.shared + head.shared, model.own + head.own};
}

FrozenDecoder inference::freeze_by(const DecoderImpl& model, WeightConverter& convert) {
  const FrozenScope scope;
  TORCH_CHECK_VALUE(model.model && model.lm_head,
                    "[freeze] the model and lm_head must be modules. Got an empty holder");
  const EncoderOptions& described = model.options.model();
  check_same("model", "options", model.model->options, described);
  check_same("model.embeddings", "options", model.model->embeddings->options,
             *described.embeddings());
  const at::Tensor& weight = model.lm_head->effective_weight();
  FrozenDecoderParts parts = {
      model.options,
      freeze_part(*model.model, convert, model.options.tied() ? weight : at::Tensor()),
      StaleCheck(model, copy_of_model_options, model.model.ptr().get())};
  parts.needs = cache_needs(parts.model);
  parts.head = convert.projection(weight, model.lm_head->bias);
  parts.call = convert.call_options();
  convert.check_exceptions();
  finish(parts.stale_check, convert);
  parts.source = {convert.options(), convert.arrays()};
  return FrozenDecoderAccess::wrap(std::move(parts));
}

FrozenDecoder freeze(const DecoderImpl& model, const FreezeOptions& options) {
  inference::WeightConverter convert(options, model);
  return inference::freeze_by(model, convert);
}

FrozenDecoder freeze(const Decoder& model, const FreezeOptions& options) {
  TORCH_CHECK_VALUE(!model.is_empty(), "[freeze] the model must not be an empty holder");
  return freeze(*model.ptr(), options);
}

FrozenDecoder freeze(Decoder&& model, const FreezeOptions& options) {
  return inference::freeze_and_release(model, options);
}

std::ostream& operator<<(std::ostream& stream, const FrozenDecoder& model) {
  return stream << "posenc::FrozenDecoder(" << inference::model_of(model) << ")";
}

namespace {

using Texts = std::vector<std::vector<int64_t>>;

// The log probabilities of the texts [begin, end), but for their first tokens.
void score_together(const inference::FrozenDecoderParts& model, const Texts& texts,
                    std::size_t begin, std::size_t end, std::vector<std::vector<double>>& found) {
  constexpr int64_t kRows = 64;  // whose logits are in memory
  std::vector<inference::NextTokens> tokens;
  int64_t longest = 0;
  for (std::size_t i = begin; i < end; ++i) {
    const auto count = std::ssize(texts[i]) - 1;
    longest = std::max(longest, count);
    if (count > 0) tokens.push_back({static_cast<int64_t>(i - begin), texts[i].data(), count});
  }
  if (tokens.empty()) return;
  inference::TokenCache cache = model.make_cache(static_cast<int64_t>(end - begin), longest);
  const auto use = [&](const std::vector<inference::NextTokens>& part, const at::Tensor& hidden) {
    std::vector<std::pair<std::size_t, int64_t>> next;  // the text and the token that follows a row
    for (const inference::NextTokens& one : part)
      for (int64_t i = 1; i <= one.count; ++i) next.emplace_back(begin + one.row, one.ids[i]);
    for (int64_t row = 0; row < hidden.size(0); row += kRows) {
      const at::Tensor logits =
          model.logits(hidden.narrow(0, row, std::min(kRows, hidden.size(0) - row)));
      const auto sum = functional::log_sum_exp(logits);
      for (int64_t j = 0; j < logits.size(0); ++j) {
        const auto [text, id] = next[row + j];
        const float logit = logits.const_data_ptr<float>()[j * logits.size(1) + id];
        found[text].push_back((logit - sum.largest.const_data_ptr<float>()[j]) -
                              sum.rest.const_data_ptr<float>()[j]);
      }
    }
  };
  inference::append_tokens(model, cache, tokens, inference::Rows::All, use);
}

}  // namespace

std::vector<std::vector<double>> score(const FrozenDecoder& model, const Texts& texts) {
  constexpr std::size_t kTokens = 4096;  // of texts that are computed together
  const auto held = inference::FrozenDecoderAccess::parts(model);
  check_texts(held->options, texts);
  const inference::FrozenCall call(held->call);
  held->check_unchanged();
  std::vector<std::vector<double>> found(texts.size());
  for (std::size_t begin = 0, end = 0; begin < texts.size(); begin = end) {
    std::size_t tokens = texts[end++].size();
    while (end < texts.size() && tokens + texts[end].size() <= kTokens)
      tokens += texts[end++].size();
    score_together(*held, texts, begin, end, found);
  }
  return found;
}

}  // namespace posenc
