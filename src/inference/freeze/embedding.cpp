#include "inference/freeze/embedding.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include <algorithm>

#include "inference/layers/freeze_parts.h"
#include "posenc/positions/sinusoid/positions.h"
#include "positions/functional/lookup.h"
#include "positions/nn/computed_table.h"
#include "positions/nn/token_positions.h"

namespace posenc::inference {

namespace {

constexpr functional::LookupNames kNames = {"TokenEmbedding", "id", "vocab_size"};

at::Tensor table_of(const TokenAndPositionEmbeddingImpl& embedding) {
  if (embedding.options.position_ids() == embeddings::PositionIds::None) return {};
  return reads_trained_rows(embedding) ? embedding.position_embedding.ptr()->weight.detach()
                                       : embedding.position_encoding.ptr()->pe.detach();
}

Norm norm_of(const TokenAndPositionEmbeddingImpl& embedding) {
  const embeddings::Norm where = embedding.options.norm();
  const bool is_read =
      where == embeddings::Norm::AfterSum || where == embeddings::Norm::AfterTokens;
  return is_read ? Norm(embedding.norm) : Norm();
}

void normalise_rows(const at::Tensor& x, const Norm& norm) {
  float* const rows = x.data_ptr<float>();
  const int64_t width = x.size(-1), count = x.numel() / width;
  normalise({rows, rows, count, width, row_regime(count)}, norm);
}

at::Tensor positions_of(const AudioEmbeddingsImpl& embeddings) {
  return embeddings.position_embedding
             ? embeddings.position_embedding.ptr()->weight.detach().contiguous()
             : embeddings.position_encoding.ptr()->pe.detach().squeeze(0).contiguous();
}

// A row of each of these frames, and one of zeros before and after them.
at::Tensor padded_rows(int64_t frames, int64_t width) {
  at::Tensor rows = at::empty({frames + 2, width}, at::kFloat);
  rows[0].zero_();
  rows[frames + 1].zero_();
  return rows;
}

}  // namespace

at::Tensor GrowingTable::table(int64_t rows) {
  const std::lock_guard lock(mutex_);
  if (rows > table_.size(1)) table_ = grown_table(table_, sinusoid_, rows);
  return table_;
}

Embedding::Embedding(const TokenAndPositionEmbedding& embedding, WeightConverter& convert)
    : table(table_of(*embedding.ptr())),
      converted(convert.table(embedding->token_embedding->weight)),
      scale(embedding->options.scale()),
      first_row(leaves_positions(*embedding.ptr()) ? 0 : first_position_row(embedding->options)),
      norm(norm_of(*embedding.ptr())),
      normalises_tokens(embedding->options.norm() == embeddings::Norm::AfterTokens) {
  if (!converted) weight = embedding->token_embedding->weight.detach();
  if (embedding->options.position_ids() != embeddings::PositionIds::FromIds) return;
  padding_idx = embedding->options.padding_idx();
  growing = std::make_shared<GrowingTable>(table, embedding->position_encoding->options.sinusoid());
}

// Converted rows become a table of their own, with the rows in the order of the ids.
std::pair<at::Tensor, at::Tensor> Embedding::tokens(const at::Tensor& ids) const {
  if (!converted) return {ids, weight};
  functional::check_index_type(kNames, ids);
  check_ids(ids);
  return {at::arange(ids.numel(), at::kLong).view(ids.sizes()), converted->rows(ids)};
}

at::Tensor Embedding::look_up(const at::Tensor& ids, int64_t rows,
                              const functional::PositionalEncodingFuncOptions& position) const {
  const auto [indices, matrix] = tokens(ids);
  const at::Tensor positions = growing ? growing->table(rows) : table;
  const bool together = positions.defined() && !normalises_tokens;
  at::Tensor x =
      together ? functional::embed(indices, matrix, positions,
                                   functional::EmbedFuncOptions().scale(scale).position(position))
               : functional::token_embedding(indices, matrix, scale);
  if (norm) normalise_rows(x, norm);
  if (!together && positions.defined()) x = functional::positional_encoding(x, positions, position);
  return x;
}

at::Tensor Embedding::operator()(const at::Tensor& ids, int64_t offset,
                                 const at::Tensor& position_ids) const {
  auto position = functional::PositionalEncodingFuncOptions();
  const int64_t length = ids.size(-1);
  if (growing) {
    position.position_ids(position_ids.defined() ? position_ids
                                                 : positions_from_ids(ids, *padding_idx, offset));
  } else if (table.defined()) {
    if (first_row > 0) check_length(length, offset);  // the look-up sees all rows as positions
    if (position_ids.defined())
      position.position_ids(position_ids + first_row);
    else
      position.offset(first_row + offset);
  }
  return look_up(ids, first_row + offset + length, position);
}

void Embedding::check_ids(const at::Tensor& ids) const {
  functional::check_indices(kNames, ids, vocab_size());
}

void Embedding::check_length(int64_t length, int64_t offset) const {
  const int64_t most = table.size(-2) - first_row;
  TORCH_CHECK_VALUE(offset + length <= most, "[FrozenTransformer] sequence length ",
                    offset + length, " exceeds max_len ", most, ". Got it with its padding");
}

at::Tensor Embedding::packed(const at::Tensor& ids, const Packing& packing) const {
  if (!packing.packed) return (*this)(ids).flatten(0, 1);
  const int64_t length = ids.size(1);
  auto position = functional::PositionalEncodingFuncOptions();
  if (growing) {
    position.position_ids(packing.pack(positions_from_ids(ids, *padding_idx)));
  } else if (table.defined()) {
    // Padding counts towards the length, as in the module, although it is not looked up.
    check_length(length, 0);
    position.position_ids(at::tensor(packing.positions, at::kLong).remainder(length) + first_row);
  }
  const at::Tensor rows = look_up(packing.pack(ids), first_row + length, position);
  check_ids(ids);
  return rows;
}

AudioRows::AudioRows(const AudioEmbeddingsImpl& embeddings, WeightConverter& convert)
    : conv1(convolution(*embeddings.conv1.ptr(), convert)),
      conv2(convolution(*embeddings.conv2.ptr(), convert)),
      table(positions_of(embeddings)) {}

at::Tensor AudioRows::rows(const at::Tensor& features) const {
  const int64_t batch = features.size(0), bins = features.size(1), frames = 2 * positions();
  const int64_t width = conv1.out();
  const at::Tensor wide = padded_rows(frames, bins), narrow = padded_rows(frames, width);
  const at::Tensor all = at::empty({batch * positions(), width}, at::kFloat);
  const float* const x = wide.const_data_ptr<float>();
  float* const y = narrow.data_ptr<float>();
  const auto run = [&](const Projection& conv, const float* from, int64_t stride, int64_t count,
                       float* to) {
    by_rows(count, [&](int64_t begin, int64_t end) {
      float* const own = to + begin * width;
      // The regime is that of a sound, so that a batch changes no bit.
      conv.run(from + begin * stride, stride, end - begin, own, width, row_regime(count));
      activate(Activation::GELU, own, (end - begin) * width);
    });
  };
  for (int64_t sound = 0; sound < batch; ++sound) {
    wide.narrow(0, 1, frames).copy_(features[sound].t());
    run(conv1, x, bins, frames, y + width);
    float* const out = all.data_ptr<float>() + sound * table.numel();
    run(conv2, y, 2 * width, positions(), out);
    const float* const added = table.const_data_ptr<float>();
    split_rows(positions(), width, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin * width; i < end * width; ++i) out[i] += added[i];
    });
  }
  return all;
}

}  // namespace posenc::inference
