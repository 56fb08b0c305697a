// posenc-budget: the module and its cache, which is used nowhere else
#include "posenc/positions/nn/rotary_embedding.h"

#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <mutex>
#include <ostream>
#include <string>
#include <utility>

#include "core/check.h"
#include "core/opaque_definitions.h"
#include "core/print_fields.h"
#include "core/tensors.h"
#include "core/torch_internals/without_memory.h"
#include "core/uncopied.h"
#include "positions/functional/rotary/compose.h"
#include "positions/nn/rotary_embedding_internals.h"
#include "positions/nn/rotary_tables.h"

namespace posenc {

struct RotaryEmbeddingState {
  RotaryTablesInUse tables;
  double attention_scaling = 1.0;
  GrowthLock lock;  // of the lengths
  RotaryLengths lengths;
};

template class detail::Opaque<RotaryEmbeddingState>;

namespace {

const rotary::Dynamic* as_dynamic(const RotaryOptions& o) {
  return std::get_if<rotary::Dynamic>(&o.scaling());
}

// See frequency_length().
struct Switched {
  int64_t last;
  template <typename T>
  int64_t operator()(const T&) const {
    return 0;
  }
  int64_t operator()(const rotary::Dynamic& s) const { return last > s.max_position ? last : 0; }
  int64_t operator()(const rotary::LongRope& s) const { return beyond(s.original_max_position); }
  int64_t operator()(const rotary::PhiMoe& s) const { return beyond(s.original_max_position); }
  int64_t beyond(double original) const {
    return static_cast<double>(last) > original ? static_cast<int64_t>(original) + 1 : 0;
  }
};

// Whether rotary_cos_sin() rejects these positions.
bool is_outside(const torch::Tensor& ids) {
  return !at::isIntegralType(ids.scalar_type(), /*includeBool=*/false) || ids.dim() == 0 ||
         (ids.numel() > 0 && ids.min().item().toLong() < 0);
}

RotaryCosSin rows_on(const RotaryCosSin& rows, torch::Device device) {
  const auto sent = [&](const torch::Tensor& t) {
    return t.defined() ? posenc::sent_to(t, device) : t;
  };
  return {sent(rows.cos), sent(rows.sin), sent(rows.scale)};
}

torch::Tensor detached(const torch::Tensor& t) { return t.defined() ? t.detach() : t; }

bool is_heads(const torch::Tensor& x) { return x.defined() && (x.dim() == 3 || x.dim() == 4); }

}  // namespace

int64_t frequency_length(const RotaryOptions& options, int64_t length) {
  return std::visit(Switched{length}, options.scaling());
}

RotaryEmbeddingImpl::RotaryEmbeddingImpl(RotaryEmbeddingOptions options_)
    : options(std::move(options_)) {
  RotaryEmbeddingImpl::reset();
}

void RotaryEmbeddingImpl::reset() {
  const RotaryOptions& o = options.rotary();
  check_positive("RotaryEmbedding", "cache_rows", options.cache_rows());
  if (options.length_rule() == LengthRule::Fixed)
    check_positive("RotaryEmbedding", "length", options.length());
  TORCH_CHECK_VALUE(
      o.angle_type() != rotary::AngleType::Input ||
          !(options.persistent() || options.learned_scale()),
      "[RotaryEmbedding] persistent and learned_scale must be false with AngleType::Input, whose "
      "frequencies are computed for each dtype. Got true");
  const c10::InferenceMode off(false);  // whose tensors do not count their changes
  const torch_internals::WithMemory has_memory;
  const RotaryFrequencies f = rotary_frequencies(o);
  state_->attention_scaling = f.attention_scaling;
  state_->lengths = {};
  if (o.precision() == Precision::Exact) {
    TORCH_CHECK_VALUE(!options.persistent() && !options.learned_scale(),
                      "[RotaryEmbedding] persistent and learned_scale must be false with "
                      "Precision::Exact, whose frequencies no float32 buffer holds. Got true");
    return;
  }
  inv_freq = register_buffer("inv_freq", f.inv_freq);
  if (options.learned_scale()) alpha = register_buffer("alpha", torch::zeros_like(f.inv_freq));
}

void RotaryEmbeddingImpl::pretty_print(std::ostream& stream) const {
  fields::print_module(stream, "RotaryEmbedding", options,
                       RotaryEmbeddingOptions(RotaryOptions(-1, options.rotary().pairing())));
}

std::shared_ptr<torch::nn::Module> RotaryEmbeddingImpl::clone(
    const std::optional<torch::Device>& device) const {
  const c10::InferenceMode off(false);  // whose tensors do not count their changes
  auto copy = Cloneable<RotaryEmbeddingImpl>::clone(device);
  auto& own = dynamic_cast<RotaryEmbeddingImpl&>(*copy);
  // Not those of the options, which may have changed since the frequencies were computed.
  own.state_->attention_scaling = state_->attention_scaling;
  RotaryEmbeddingAccess::set_lengths(own, RotaryEmbeddingAccess::lengths(*this));
  own.state_->tables.adopt(RotaryEmbeddingAccess::tables(*this),
                           RotaryEmbeddingAccess::source(own));
  return copy;
}

std::vector<std::string> RotaryEmbeddingImpl::non_persistent_names() const {
  return options.persistent() ? std::vector<std::string>() : std::vector<std::string>{"inv_freq"};
}

void RotaryEmbeddingImpl::to(torch::Device device, torch::Dtype dtype, bool non_blocking) {
  RotaryEmbeddingAccess::move(*this, options.casts_frequencies(),
                              [&] { torch::nn::Module::to(device, dtype, non_blocking); });
}

void RotaryEmbeddingImpl::to(torch::Dtype dtype, bool non_blocking) {
  RotaryEmbeddingAccess::move(*this, options.casts_frequencies(),
                              [&] { torch::nn::Module::to(dtype, non_blocking); });
}

void RotaryEmbeddingImpl::to(torch::Device device, bool non_blocking) {
  RotaryEmbeddingAccess::move(*this, /*casts=*/false,
                              [&] { torch::nn::Module::to(device, non_blocking); });
}

functional::QueryKey RotaryEmbeddingImpl::forward(const torch::Tensor& q, const torch::Tensor& k,
                                                  int64_t offset,
                                                  const torch::Tensor& position_ids) {
  return functional::rotary(q, k, rows(q.defined() ? q : k, offset, position_ids), options.rotary(),
                            functional::RotaryFuncOptions().head_axis(options.head_axis()));
}

void RotaryEmbeddingImpl::forward_(const torch::Tensor& q, const torch::Tensor& k, int64_t offset,
                                   const torch::Tensor& position_ids) {
  functional::rotary_(q, k, rows(q.defined() ? q : k, offset, position_ids), options.rotary(),
                      functional::RotaryFuncOptions().head_axis(options.head_axis()));
}

RotaryCosSin RotaryEmbeddingImpl::cos_sin(const torch::Tensor& position_ids, torch::Dtype dtype) {
  TORCH_CHECK_VALUE(position_ids.defined(), "[RotaryEmbedding] position_ids must be a tensor");
  return rows_of(position_ids, dtype);
}

// The length for which the frequencies are computed in a call whose largest position is last - 1;
// 0: those of construction.
int64_t RotaryEmbeddingImpl::length_for(int64_t last) {
  const RotaryOptions& o = options.rotary();
  if (!o.length_dependent()) return 0;
  if (options.length_rule() == LengthRule::Fixed) return frequency_length(o, options.length());
  const rotary::Dynamic* const dynamic = as_dynamic(o);
  if (dynamic == nullptr || options.length_rule() == LengthRule::PerCall)
    return frequency_length(o, last);
  const std::unique_lock<std::shared_mutex> writing(state_->lock);
  RotaryLengths& s = state_->lengths;
  const int64_t longest =
      last > 0 && last < dynamic->max_position ? last : std::max(s.longest, last);
  if (longest != s.longest) s = {longest, {}};
  return frequency_length(o, s.longest);
}

// As in transformers: LongRoPE's other set is copied into the buffer, and rounded if the buffer was
// cast; the frequencies of a longer sequence (Dynamic) replace the buffer, and are rounded only by
// a later cast; PhiMoe's are computed in each call.
RotaryFrequencies RotaryEmbeddingImpl::frequencies(int64_t length, torch::Dtype dtype) const {
  const RotarySource source = RotaryEmbeddingAccess::source(*this);
  const RotaryOptions& o = source.options;
  if (!source.inv_freq.defined() || o.angle_type() == rotary::AngleType::Input)
    return rotary_frequencies(o, length, dtype);
  RotaryFrequencies f{source.inv_freq, source.attention_scaling};
  if (length != 0 || std::holds_alternative<rotary::PhiMoe>(o.scaling())) {
    f = rotary_frequencies(o, length, dtype);
    if (std::holds_alternative<rotary::LongRope>(o.scaling()))
      f.inv_freq = f.inv_freq.to(source.inv_freq.scalar_type());
    if (const RotaryLengths& lengths = source.lengths;
        lengths.grown.defined() && length == frequency_length(o, lengths.longest))
      f.inv_freq = lengths.grown;
    f.inv_freq = posenc::sent_to(f.inv_freq, source.inv_freq.device());
  }
  const bool wide = o.angle_type() == rotary::AngleType::Float64 ||
                    o.angle_type() == rotary::AngleType::Float64Angle;
  f.inv_freq = f.inv_freq.to(wide ? torch::kDouble : torch::kFloat);
  if (source.alpha.defined()) f.inv_freq = f.inv_freq * source.alpha.to(torch::kFloat).exp();
  return f;
}

RotaryCosSin RotaryEmbeddingImpl::computed(const torch::Tensor& position_ids, torch::Dtype dtype,
                                           int64_t length) {
  const torch::NoGradGuard no_grad;  // rows are cached, and outlive a graph
  return rotary_cos_sin(options.rotary(), frequencies(length, dtype), position_ids, dtype);
}

// The rows of positions first ... last - 1. For Precision::Exact the positions are made on the CPU,
// where the rows are computed; otherwise they would have to be read back from the device.
RotaryCosSin RotaryEmbeddingImpl::computed(int64_t first, int64_t last, torch::Dtype dtype,
                                           torch::Device device, int64_t length) {
  const bool exact = options.rotary().precision() == Precision::Exact;
  const auto ids = torch::arange(
      first, last, torch::TensorOptions(torch::kLong).device(exact ? torch::kCPU : device));
  return rows_on(computed(ids, dtype, length), device);
}

// Rows are not cached for frequencies that change with each token.
bool RotaryEmbeddingImpl::may_cache(int64_t rows, torch::Dtype dtype, int64_t length) const {
  const bool lasting = length == 0 || options.length_rule() == LengthRule::Fixed ||
                       as_dynamic(options.rotary()) == nullptr;
  const bool by_position = options.rotary().xpos_scale_base() == 0.0;
  return lasting && by_position && rows <= options.cache_rows() && at::isFloatingType(dtype);
}

RotaryCosSin RotaryEmbeddingImpl::cached(int64_t rows, torch::Dtype dtype, torch::Device device,
                                         int64_t length) {
  return RotaryEmbeddingAccess::tables(*this)->rows(
      rows, options.cache_rows(), dtype, device, length,
      [&](int64_t first, int64_t last) { return computed(first, last, dtype, device, length); });
}

RotaryCosSin RotaryEmbeddingImpl::rows(const torch::Tensor& like, int64_t offset,
                                       const torch::Tensor& position_ids) {
  TORCH_CHECK_VALUE(is_heads(like),
                    "[RotaryEmbedding] q or k must be a tensor with 3 or 4 axes. Got ",
                    like.defined() ? c10::str(like.sizes()) : "neither");
  const torch::Dtype dtype = like.scalar_type();
  const bool heads_first = options.head_axis() == rotary::HeadAxis::BeforeLength;
  const int64_t tokens = like.size(heads_first ? -2 : -3);
  functional::check_rotary_offset("RotaryEmbedding", options.rotary(), offset, position_ids,
                                  tokens);
  if (position_ids.defined()) return rows_of(position_ids, dtype);
  const int64_t last = offset + tokens, length = length_for(tokens == 0 ? 0 : last);
  if (last > 0 && may_cache(last, dtype, length)) {
    const RotaryCosSin all = cached(last, dtype, like.device(), length);
    return {all.cos.slice(0, offset, last), all.sin.slice(0, offset, last)};
  }
  return computed(offset, last, dtype, like.device(), length);
}

RotaryLengths RotaryEmbeddingAccess::lengths(const RotaryEmbeddingImpl& module) {
  const std::shared_lock<std::shared_mutex> reading(module.state_->lock);
  return module.state_->lengths;
}

void RotaryEmbeddingAccess::set_lengths(RotaryEmbeddingImpl& module, RotaryLengths lengths) {
  const std::unique_lock<std::shared_mutex> writing(module.state_->lock);
  module.state_->lengths = std::move(lengths);
}

std::shared_ptr<RotaryTables> RotaryEmbeddingAccess::tables(const RotaryEmbeddingImpl& module) {
  return module.state_->tables.of(source(module));
}

RotarySource RotaryEmbeddingAccess::source(const RotaryEmbeddingImpl& module) {
  return {module.options.rotary(), module.inv_freq, module.alpha, module.state_->attention_scaling,
          lengths(module)};
}

void RotaryEmbeddingAccess::move(RotaryEmbeddingImpl& module, bool casts,
                                 const std::function<void()>& to) {
  const c10::InferenceMode off(false);  // whose tensors do not count their changes
  const torch::Tensor frequencies = detached(module.inv_freq), scale = detached(module.alpha);
  const std::shared_ptr<RotaryTables> before = tables(module);
  to();
  if (casts) return cast_grown(module);
  if (frequencies.defined()) module.inv_freq.set_data(frequencies.to(module.inv_freq.device()));
  if (scale.defined()) module.alpha.set_data(scale.to(module.alpha.device()));
  module.state_->tables.adopt(before, source(module));
}

// As in Python, where the frequencies of a longer sequence have replaced the buffer that is cast.
void RotaryEmbeddingAccess::cast_grown(RotaryEmbeddingImpl& module) {
  const RotaryOptions& o = module.options.rotary();
  RotaryLengths now = lengths(module);
  const int64_t length = frequency_length(o, now.longest);
  if (length == 0 || as_dynamic(o) == nullptr || !module.inv_freq.defined()) return;
  if (!now.grown.defined()) now.grown = rotary_frequencies(o, length).inv_freq;
  now.grown = now.grown.to(module.inv_freq.options());
  set_lengths(module, std::move(now));
}

RotaryCosSin RotaryEmbeddingImpl::rows_of(const torch::Tensor& given, torch::Dtype dtype) {
  const RotaryOptions& o = options.rotary();
  const torch::Tensor position_ids = comparable(given);
  // Positions of several planes are combined and not looked up, and those on a GPU are not read
  // back.
  const bool may_look_up = position_ids.is_cpu() && position_ids.dim() < 3 && !o.axial();
  int64_t last = 0;
  if (position_ids.numel() > 0 && (o.length_dependent() || may_look_up))
    last = position_ids.max().item().toLong() + 1;
  // Invalid positions do not count as the longest so far.
  if (last > kPositionLimit || (may_look_up && is_outside(position_ids)))
    return computed(position_ids, dtype, 0);
  const int64_t length = length_for(last);
  if (!may_look_up || last < 1 || !may_cache(last, dtype, length))
    return computed(position_ids, dtype, length);
  const RotaryCosSin all = cached(last, dtype, position_ids.device(), length);
  const torch::Tensor ids = position_ids.to(torch::kLong);
  return {torch::embedding(all.cos, ids), torch::embedding(all.sin, ids)};
}

}  // namespace posenc
