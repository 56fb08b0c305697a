#include "inference/attention/rotation.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/tensor.h>

#include "base/platform/memory.h"
#include "kernels/dispatch.h"
#include "positions/nn/rotary_embedding_internals.h"

namespace posenc::inference {
namespace {

functional::RotaryFuncOptions rows_of_table(const at::Tensor& rows) {
  return functional::RotaryFuncOptions()
      .head_axis(rotary::HeadAxis::AfterLength)
      .position_ids(rows);
}

}  // namespace

Rotation::Rotation(const RotaryEmbeddingImpl& source, HeadSizes sizes_)
    : rotary(std::dynamic_pointer_cast<RotaryEmbeddingImpl>(source.clone())), sizes(sizes_) {
  const auto buffers = source.named_buffers();
  for (auto& item : rotary->named_buffers()) item.value().set_data(buffers[item.key()].detach());
  if (!rotary->options.rotary().length_dependent()) return;
  by_call = RotaryEmbedding(std::dynamic_pointer_cast<RotaryEmbeddingImpl>(rotary->clone()));
  if (by_call->options.length_rule() == LengthRule::System)
    by_call->options.length_rule(LengthRule::PerCall);
}

std::optional<LengthSwitch> Rotation::length_switch() const {
  const RotaryEmbeddingOptions& options = rotary->options;
  if (by_call.is_empty() || options.length_rule() == LengthRule::Fixed) return std::nullopt;
  const rotary::Scaling& scaling = options.rotary().scaling();
  if (const auto* const own = std::get_if<rotary::LongRope>(&scaling))
    return LengthSwitch{static_cast<double>(own->original_max_position), true};
  if (const auto* const own = std::get_if<rotary::PhiMoe>(&scaling))
    return LengthSwitch{static_cast<double>(own->original_max_position), true};
  if (const auto* const own = std::get_if<rotary::Dynamic>(&scaling))
    return LengthSwitch{static_cast<double>(own->max_position), false};
  return std::nullopt;
}

// Modules that would compute the same tables share them.
bool Rotation::is_of(const RotaryEmbeddingImpl& source, const HeadSizes& other) const {
  const RotaryEmbeddingOptions &own = rotary->options, &its = source.options;
  return sizes == other && own.length_rule() == its.length_rule() && own.length() == its.length() &&
         RotaryEmbeddingAccess::tables(*rotary) == RotaryEmbeddingAccess::tables(source);
}

RowPositions::RowPositions(const Packing& packing, const at::Tensor& position_ids, bool axial) {
  if (!packing.past.empty()) {
    ids = packing.token_positions();
    row_of_ids = at::arange(packing.rows, at::kLong);
    lengths = packing.lengths;
    return;
  }
  ids = position_ids.defined() ? position_ids : at::arange(packing.length, at::kLong);
  row_of_ids = packing.packed ? at::tensor(packing.positions, at::kLong)
                              : at::arange(packing.rows, at::kLong);
  const bool are_of_all = ids.dim() == (axial ? 2 : 1) || ids.size(0) == 1;
  if (are_of_all && packing.rows > 0) row_of_ids = row_of_ids.remainder(packing.length);
}

std::vector<float> query_factors(const QueryGrowth& growth, const RowPositions& positions) {
  const at::Tensor all = positions.ids.reshape({-1}).index_select(0, positions.row_of_ids);
  const at::Tensor ids = all.to(at::kLong).contiguous();
  std::vector<float> factors;
  for (int64_t row = 0; row < ids.numel(); ++row)
    factors.push_back(growth.factor(ids.const_data_ptr<int64_t>()[row]));
  return factors;
}

namespace {

// The rows of each sequence by the frequencies of its own length.
RotaryCosSin rows_by_sequence(RotaryEmbedding rotary, const RowPositions& positions) {
  std::vector<at::Tensor> cos, sin, scale;
  int64_t first = 0;
  for (const int64_t length : positions.lengths) {
    const RotaryCosSin own = rotary->cos_sin(positions.ids.narrow(0, first, length));
    cos.push_back(own.cos);
    sin.push_back(own.sin);
    if (own.scale.defined()) scale.push_back(own.scale);
    first += length;
  }
  return {at::cat(cos), at::cat(sin), scale.empty() ? at::Tensor() : at::cat(scale)};
}

}  // namespace

RowRotation::RowRotation(const Rotation& rotation, const at::Tensor& projected,
                         const RowPositions& positions)
    : options_(rotation.rotary->options.rotary()), row_of_table_(positions.row_of_ids) {
  if (projected.size(0) == 0) return;
  table_ = positions.lengths.empty() || rotation.by_call.is_empty()
               ? RotaryEmbedding(rotation.rotary)->cos_sin(positions.ids)
               : rows_by_sequence(rotation.by_call, positions);
  for (at::Tensor* one : {&table_.cos, &table_.sin, &table_.scale}) {
    if (one->defined() && one->dim() == 3) *one = one->flatten(0, 1);
  }
  const HeadSizes& sizes = rotation.sizes;
  const auto heads = [&](int64_t column, int64_t count) {
    return projected.narrow(1, column, count * sizes.head_dim)
        .unflatten(1, {count, sizes.head_dim});
  };
  const int64_t keys = sizes.query_width(), values = keys + sizes.kv_width();
  add(heads(0, sizes.heads), sizes.kv_heads > 0 ? heads(keys, sizes.kv_heads) : at::Tensor());
  if (options_.rotary_value()) add(heads(values, sizes.kv_heads), {});
}

void RowRotation::add(const at::Tensor& first, const at::Tensor& second) {
  Pair pair = {first, second, {}, false};
  pair.has_plan =
      functional::is_fusable(first, second, table_, options_, rows_of_table(row_of_table_),
                             functional::Pass::Forward, pair.plan, row_of_table_);
  for (int i = 0; pair.has_plan && i < pair.plan.rotation.count; ++i) {
    kernels::rotary::Heads& heads = pair.plan.rotation.heads[i];
    heads.out = const_cast<void*>(heads.x);
    heads.out_head = heads.x_head;
    heads.out_row = heads.x_row;
  }
  pair.plan.rotation.stream = false;
  pairs_.push_back(std::move(pair));
}

void RowRotation::operator()(int64_t begin, int64_t end) const {
  for (const Pair& pair : pairs_) {
    if (pair.has_plan) {
      const kernels::rotary::Rotation& rotation = pair.plan.rotation;
      const int64_t floats = kernels::rotary::scratch_floats(rotation.pairs);
      kernels::chosen_inference().rotary.rotate[static_cast<int>(pair.plan.type)](
          rotation, begin, end, platform::scratch(platform::Scratch::Rotation, floats));
      continue;
    }
    const auto rows = [&](const at::Tensor& x) {
      return x.defined() ? x.narrow(0, begin, end - begin) : x;
    };
    const at::Tensor first = rows(pair.first), second = rows(pair.second);
    const auto [to_first, to_second] =
        functional::rotary(first, second, table_, options_, rows_of_table(rows(row_of_table_)));
    first.copy_(to_first);
    if (second.defined()) second.copy_(to_second);
  }
}

}  // namespace posenc::inference
