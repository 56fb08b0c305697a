#include "posenc/positions/nn/rotary_position_embedding_2d.h"

#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <mutex>
#include <ostream>

#include "core/opaque_definitions.h"
#include "core/print_fields.h"
#include "core/tensors.h"
#include "core/uncopied.h"
#include "positions/nn/augmented_positions.h"
#include "positions/nn/rotary_tables.h"

namespace posenc {

struct RotaryPositionEmbedding2dState {
  GrowthLock lock;
  std::shared_ptr<RotaryGridTables> tables;
};

template class detail::Opaque<RotaryPositionEmbedding2dState>;

namespace {

PositionAugmentation augmentation_of(const RotaryPositionEmbedding2dOptions& options) {
  return {options.shift(), options.jitter(), options.rescale()};
}

}  // namespace

RotaryPositionEmbedding2dImpl::RotaryPositionEmbedding2dImpl(
    RotaryPositionEmbedding2dOptions options_)
    : options(std::move(options_)) {
  RotaryPositionEmbedding2dImpl::reset();
}

void RotaryPositionEmbedding2dImpl::reset() {
  const RotaryOptions& o = options.rotary();
  o.validate();
  const int64_t planes = o.plane_count();
  TORCH_CHECK_VALUE(o.axial() && !o.modulated() && (planes == 2 || planes == 3),
                    "[RotaryPositionEmbedding2d] rotary must have planes of an axial kind, two or "
                    "three of them. Got ",
                    o.axial() ? c10::str(planes, o.modulated() ? ", modulated" : "") : "another");
  TORCH_CHECK_VALUE(o.frequency() != rotary::Frequency::Learned,
                    "[RotaryPositionEmbedding2d] rotary must have frequencies of a formula. Got "
                    "Frequency::Learned");
  TORCH_CHECK_VALUE(!o.grid().learned_prefix,
                    "[RotaryPositionEmbedding2d] rotary must have no class token with learned "
                    "angles (MLCD): put its cos and sin before those of rotary_grid(), and use "
                    "functional::rotary(). Got grid.learned_prefix");
  TORCH_CHECK_VALUE(options.prefix_tokens() >= 0,
                    "[RotaryPositionEmbedding2d] prefix_tokens must not be negative. Got ",
                    options.prefix_tokens());
  TORCH_CHECK_VALUE(options.cached_grids() >= 0,
                    "[RotaryPositionEmbedding2d] cached_grids must not be negative. Got ",
                    options.cached_grids());
  check_augmentation("RotaryPositionEmbedding2d", augmentation_of(options));
}

void RotaryPositionEmbedding2dImpl::pretty_print(std::ostream& stream) const {
  fields::print_module(
      stream, "RotaryPositionEmbedding2d", options,
      RotaryPositionEmbedding2dOptions(RotaryOptions(-1, options.rotary().pairing())));
}

functional::QueryKey RotaryPositionEmbedding2dImpl::forward(const torch::Tensor& q,
                                                            const torch::Tensor& k, int64_t height,
                                                            int64_t width, int64_t frames) {
  const torch::Tensor& like = q.defined() ? q : k;
  TORCH_CHECK_VALUE(like.defined(), "[RotaryPositionEmbedding2d] q or k must be a tensor");
  TORCH_CHECK_TYPE(like.is_floating_point(),
                   "[RotaryPositionEmbedding2d] q and k must be floating-point. Got ",
                   like.scalar_type());
  const auto func_options = functional::RotaryFuncOptions()
                                .head_axis(options.head_axis())
                                .prefix_tokens(options.prefix_tokens());
  const RotaryCosSin table = rows(height, width, frames, like.scalar_type(), like.device());
  return functional::rotary(q, k, table, options.rotary(), func_options);
}

bool RotaryPositionEmbedding2dImpl::is_augmented() const {
  return is_training() && !augmentation_of(options).is_none();
}

RotaryCosSin RotaryPositionEmbedding2dImpl::computed(at::IntArrayRef sizes, torch::Dtype dtype,
                                                     torch::Device device) const {
  const RotaryOptions& o = options.rotary();
  const size_t planes = static_cast<size_t>(o.plane_count());
  torch::Tensor positions = rotary_grid(o, sizes.slice(sizes.size() - planes));
  // Exact rows are computed on the CPU, so positions on a device would have to be read back.
  const bool stays = o.precision() == Precision::Exact && !is_augmented();
  if (!stays) positions = sent_to(positions, device);
  if (is_augmented()) positions = augmented_positions(positions, augmentation_of(options));
  RotaryCosSin grid = rotary_cos_sin(o, positions, dtype);
  grid = {sent_to(grid.cos, device), sent_to(grid.sin, device)};
  if (planes == sizes.size() || sizes[0] == 1) return grid;
  return {grid.cos.repeat({sizes[0], 1}), grid.sin.repeat({sizes[0], 1})};
}

RotaryCosSin RotaryPositionEmbedding2dImpl::cos_sin(int64_t height, int64_t width, int64_t frames,
                                                    torch::Dtype dtype, torch::Device device) {
  const RotaryCosSin table = rows(height, width, frames, dtype, device);
  const c10::InferenceMode off(false);            // a later backward may need them
  return {table.cos.clone(), table.sin.clone()};  // the caller may write to them
}

RotaryCosSin RotaryPositionEmbedding2dImpl::rows(int64_t height, int64_t width, int64_t frames,
                                                 torch::Dtype dtype, torch::Device device) {
  const std::vector<int64_t> sizes = {frames, height, width};
  TORCH_CHECK_VALUE(std::min({frames, height, width}) > 0,
                    "[RotaryPositionEmbedding2d] height, width and frames must be positive. Got ",
                    height, ", ", width, " and ", frames);
  if (is_augmented()) return computed(sizes, dtype, device);
  const auto tables = RotaryPositionEmbedding2dAccess::tables(*this);
  RotaryCosSin found = tables->find(sizes, dtype, device);
  if (found.cos.defined()) return found;
  // A later backward may need these tensors, even if the first forward runs inside InferenceMode.
  const c10::InferenceMode off(false);
  found = computed(sizes, dtype, device);
  tables->keep({sizes, dtype, device, found});
  return found;
}

std::shared_ptr<RotaryGridTables> RotaryPositionEmbedding2dAccess::tables(
    const RotaryPositionEmbedding2dImpl& module) {
  RotaryPositionEmbedding2dState& s = *module.state_;
  const RotaryGridTables::Key key{module.options.rotary(), module.options.cached_grids()};
  const std::unique_lock<std::shared_mutex> writing(s.lock);
  if (!s.tables || !(s.tables->key() == key)) s.tables = RotaryGridTables::shared(key);
  return s.tables;
}

}  // namespace posenc
