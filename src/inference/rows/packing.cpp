#include "inference/rows/packing.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <utility>

#include "kernels/inference.h"

namespace posenc::inference {

Packing::Packing(int64_t batch_, int64_t length_)
    : batch(batch_), length(length_), rows(batch * length), packed(false) {
  for (int64_t b = 0; b < batch; ++b) first.push_back(b * length), lengths.push_back(length);
}

Packing::Packing(const at::Tensor& keep)
    : batch(keep.size(0)), length(keep.size(1)), rows(0), packed(true) {
  const at::Tensor kept = keep.contiguous();
  const bool* const is_kept = kept.const_data_ptr<bool>();
  for (int64_t b = 0; b < batch; ++b) {
    first.push_back(rows);
    for (int64_t position = b * length; position < (b + 1) * length; ++position)
      if (is_kept[position]) positions.push_back(position);
    rows = static_cast<int64_t>(positions.size());
    lengths.push_back(rows - first.back());
  }
}

Packing::Packing(const std::vector<int64_t>& lengths_, std::vector<int64_t> past_)
    : batch(std::ssize(lengths_)),
      length(batch == 0 ? 0 : *std::max_element(lengths_.begin(), lengths_.end())),
      rows(0),
      packed(false),
      covers_mask(true),
      lengths(lengths_),
      past(std::move(past_)) {
  for (const int64_t own : lengths) {
    first.push_back(rows);
    rows += own;
    packed |= own != length;
  }
  for (int64_t b = 0; packed && b < batch; ++b)
    for (int64_t i = 0; i < lengths[b]; ++i) positions.push_back(b * length + i);
}

at::Tensor Packing::token_positions() const {
  const at::Tensor all = at::empty({rows}, at::kLong);
  auto* const to = all.data_ptr<int64_t>();
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t i = 0; i < lengths[b]; ++i) to[first[b] + i] = past[b] + i;
  return all;
}

namespace {

// The tokens (B, L) that a mask tells from padding; undefined where it does not, or where it is of
// another batch, which is an error when it is resolved.
at::Tensor tokens_of(const AttentionMask& mask, int64_t batch, int64_t length) {
  const at::Tensor keys = mask.padding_keys();
  const bool fits =
      keys.defined() && keys.is_cpu() && keys.size(0) == batch && keys.size(1) == length;
  return fits ? keys : at::Tensor();
}

}  // namespace

Packing Packing::of(const AttentionMask& mask, int64_t batch, int64_t length,
                    const at::Tensor& computed) {
  const at::Tensor tokens = tokens_of(mask, batch, length);
  const bool has_padding = tokens.defined() && !tokens.all().item<bool>();
  const at::Tensor rows = has_padding && computed.defined() ? tokens.logical_or(computed) : tokens;
  const bool is_packed = has_padding && !rows.all().item<bool>();
  Packing packing = is_packed ? Packing(rows) : Packing(batch, length);
  packing.covers_mask = tokens.defined() && rows.equal(tokens);
  if (!tokens.defined() || packing.covers_mask) return packing;
  packing.tokens = tokens.contiguous();
  const bool* const is_token = packing.tokens.const_data_ptr<bool>();
  for (int64_t b = 0; b < batch; ++b)
    packing.token_counts.push_back(
        std::count(is_token + b * length, is_token + (b + 1) * length, true));
  return packing;
}

Packing Packing::whole(const AttentionMask& mask, int64_t batch, int64_t length) {
  return of(mask, batch, length, at::ones({1, 1}, at::kBool));
}

std::vector<int64_t> Packing::rows_without(const at::Tensor& kept) const {
  std::vector<int64_t> found;
  if (!kept.defined()) return found;
  const at::Tensor all = kept.ne(0).cpu().contiguous();
  const bool* const is_kept = all.const_data_ptr<bool>();
  for (int64_t row = 0; row < rows; ++row) {
    if (!is_kept[packed ? positions[static_cast<std::size_t>(row)] : row]) found.push_back(row);
  }
  return found;
}

AttentionMask Packing::residual_mask(const AttentionMask& mask) const {
  return covers_mask ? AttentionMaskAccess::without_keys(mask) : mask;
}

bool Packing::has_neighbours() const {
  for (int64_t b = 0; packed && b < batch; ++b) {
    const int64_t count = lengths[b];
    if (count > 0 && positions[first[b] + count - 1] != positions[first[b]] + count - 1)
      return false;
  }
  return true;
}

// Whether each sequence keeps its first rows, which then are numbered as before.
bool Packing::keeps_beginnings() const {
  for (int64_t b = 0; packed && b < batch; ++b) {
    const int64_t count = lengths[b];
    if (count > 0 && positions[first[b] + count - 1] != b * length + count - 1) return false;
  }
  return true;
}

at::Tensor Packing::kept_positions() const {
  if (keeps_beginnings()) return {};
  const at::Tensor index = at::zeros({batch, length}, at::kLong);
  int64_t* const to = index.data_ptr<int64_t>();
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t i = 0; i < lengths[b]; ++i)
      to[b * length + i] = positions[first[b] + i] - b * length;
  return index;
}

// Moves what a bias (B|1, H|1, L|1, S|1) has for the kept rows to the front of `axis`.
at::Tensor Packing::kept(const at::Tensor& bias, int64_t axis) const {
  if (!bias.defined() || bias.size(axis) == 1 || keeps_beginnings()) return bias;
  const at::Tensor index = kept_positions().unsqueeze(1);
  std::vector<int64_t> sizes = bias.sizes().vec();
  sizes[0] = batch;
  const at::Tensor all = bias.expand(sizes);
  return all.gather(axis, index.unsqueeze(axis == 2 ? 3 : 2).expand(sizes));
}

ScoreMask Packing::mask_of_rows(const AttentionMask& mask, int64_t heads, const at::Tensor& like,
                                bool counts_tokens) const {
  if (batch == 0) return {};
  AttentionMask own = residual_mask(mask);
  const AttentionShape shape = {batch, heads, length, length};
  at::Tensor by_distance;
  if (!counts_tokens || has_neighbours()) {
    by_distance =
        AttentionMaskAccess::by_distance(own, shape, like, kernels::inference::kPanelRows);
    own = AttentionMaskAccess::without_slopes(own);
  }
  // Rows keep their order, so that those before a row are those before it in the whole sequence.
  const ScoreMask rest = AttentionMaskAccess::resolve(own, shape, like);
  return {kept_pairs(rest.bias), rest.is_causal, by_distance, kept_pairs(rest.allowed)};
}

ScoreMask Packing::mask_of_keys(const AttentionMask& mask, int64_t heads, int64_t queries,
                                const at::Tensor& like) const {
  if (batch == 0) return {};
  const AttentionMask own = residual_mask(mask);
  const AttentionShape shape = {batch, heads, queries, length};
  AttentionMask rest = AttentionMaskAccess::without_slopes(own);
  // The kept keys up to key i are not the first i + 1 of them: a causal mask needs a bias.
  if (!rest.is_none() && !keeps_beginnings())
    rest = rest & AttentionMask::additive(at::zeros({1, 1, 1, 1}, like.options()));
  const ScoreMask resolved = AttentionMaskAccess::resolve(rest, shape, like);
  return {kept(resolved.bias, 3), resolved.is_causal,
          AttentionMaskAccess::by_distance(own, shape, like, /*room=*/0),
          kept(resolved.allowed, 3)};
}

std::vector<SequenceRange> Packing::parts(int64_t rows_each) const {
  const int64_t count = std::clamp<int64_t>(rows / rows_each, 1, std::max<int64_t>(batch, 1));
  std::vector<SequenceRange> found;
  SequenceRange part = {0, 0, 0, 0};
  for (int64_t b = 0; b < batch; ++b) {
    part.end = b + 1;
    part.rows += lengths[b];
    const int64_t done = part.first_row + part.rows;
    const bool is_full = done < rows && done * count >= rows * (std::ssize(found) + 1);
    if (b + 1 < batch && !is_full) continue;
    found.push_back(part);
    part = {part.end, part.end, done, 0};
  }
  return found;
}

at::Tensor Packing::pack(const at::Tensor& x) const {
  const at::Tensor flat = x.flatten(0, 1);
  return packed ? flat.index_select(0, at::tensor(positions, at::kLong)) : flat;
}

at::Tensor Packing::unpack(const at::Tensor& packed_rows) const {
  if (!packed) return packed_rows.view({batch, length, packed_rows.size(1)});
  const at::Tensor all = at::zeros({batch * length, packed_rows.size(1)}, packed_rows.options());
  all.index_copy_(0, at::tensor(positions, at::kLong), packed_rows);
  return all.view({batch, length, packed_rows.size(1)});
}

}  // namespace posenc::inference
