#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/InferenceMode.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>

#include "core/print_fields.h"
#include "core/torch_internals/without_memory.h"
#include "posenc/positions/nn/audio_embeddings.h"
#include "posenc/positions/nn/layer_norm.h"
#include "posenc/transformer/layers/transformer_decoder_layer.h"
#include "posenc/transformer/layers/transformer_encoder.h"
#include "posenc/transformer/layers/window_encoder.h"

// The tensors and modules that a frozen model reads of a module, beside those of a module without
// memory that its options describe. They are those of the holders, which callers can exchange
// without registering another.

namespace posenc::inference {

/// A tensor that may be missing.
struct Optional {
  const at::Tensor& tensor;
};
inline Optional maybe(const at::Tensor& tensor) { return {tensor}; }

#define POSENC_PARTS(Impl, ...)                    \
  template <typename Visit>                        \
  void visit_parts(const Impl& m, Visit&& visit) { \
    visit(#__VA_ARGS__, __VA_ARGS__);              \
  }

POSENC_PARTS(torch::nn::LinearImpl, m.weight, maybe(m.bias))
#include "inference/layers/module_parts.inc"
#undef POSENC_PARTS

void check_tensor(const std::string& name, const at::Tensor& tensor, at::IntArrayRef sizes);

/// Makes a module without memory. Throws its errors as those of freeze() for the part `name`.
template <typename Impl, typename Options>
std::shared_ptr<Impl> without_memory(const std::string& name, const Options& options) {
  const c10::InferenceMode off(false);
  const torch_internals::WithoutMemory guard;
  try {
    return std::make_shared<Impl>(options);
  } catch (const c10::Error& error) {
    const std::string what = error.what_without_backtrace();  // [Module] rule
    TORCH_CHECK_VALUE(false, "[freeze] ", name, ": ", what.substr(what.find("] ") + 2));
  }
}

template <typename Impl>
void check_parts(const std::string& name, const Impl& own, const Impl& like);

/// The first field in which a struct, or a value, differs from `like`: what follows the struct's
/// name, such as `.sinusoid.base`, and both values.
struct Difference {
  std::string field = {}, own = {}, like = {};
};
template <typename Value>
void find_difference(const Value& own, const Value& like, Difference& found) {
  if constexpr (fields::IsListed<Value>::value) {
    fields::any_of_pairs(
        own, like, fields::Which::EvalMode,
        [&](const char* names, std::size_t index, const auto& value, const auto& other) {
          if (!fields::differ(value, other, fields::Which::EvalMode)) return false;
          found.field += "." + fields::field_name(names, index);
          find_difference(value, other, found);
          return true;
        });
  } else {
    std::ostringstream of_own, of_like;
    fields::print_value(of_own, own, static_cast<const Value*>(nullptr));
    fields::print_value(of_like, like, static_cast<const Value*>(nullptr));
    found.own = of_own.str();
    found.like = of_like.str();
  }
}
template <typename Value>
void find_difference(const std::optional<Value>& own, const std::optional<Value>& like,
                     Difference& found) {
  if (own && like) return find_difference(*own, *like, found);
  find_difference<std::optional<Value>>(own, like, found);
}

/// Throws c10::ValueError for an option, or a struct of options, that is not that of the model.
template <typename Value>
void check_same(const std::string& name, const std::string& option, const Value& own,
                const Value& like) {
  if (!fields::differ(own, like, fields::Which::EvalMode)) return;
  Difference found;
  find_difference(own, like, found);
  TORCH_CHECK_VALUE(false, "[freeze] ", name, ": ", option, found.field, " must be ", found.like,
                    ", as in the rest of the model. Got ", found.own);
}

/// Throws c10::ValueError unless the two have the same of what the modules of a layer, or of a
/// stack, share.
template <typename Options>
void check_shared_options(const std::string& name, const Options& own, const Options& like) {
  static constexpr std::string_view kShared[] = {"d_model",     "embed_dim",      "num_heads",
                                                 "batch_first", "feed_forward",   "disentangled",
                                                 "bottleneck",  "transformer_xl", "windows"};
  fields::any_of_pairs(
      own, like, fields::Which::EvalMode,
      [&](const char* names, std::size_t index, const auto& value, const auto& other) {
        const std::string field = fields::field_name(names, index);
        if (std::find(std::begin(kShared), std::end(kShared), field) != std::end(kShared))
          check_same(name, field, value, other);
        return false;
      });
}

/// Throws c10::ValueError for a module that has no tensors of the sizes of its options, or other
/// sizes than `like`; other options may be its own.
template <typename Impl>
void check_module(const std::string& name, const Impl& own, const Impl& like) {
  if constexpr (requires { own.options.visit_fields(fields::Nothing()); }) {
    check_shared_options(name, own.options, like.options);
    if constexpr (!std::is_same_v<decltype(own.options), TransformerLayerOptions>)
      return check_parts(name, own, *without_memory<Impl>(name, own.options));
  }
  check_parts(name, own, like);
}

inline void check_part(const std::string& name, const at::Tensor& own, const at::Tensor& like,
                       int64_t) {
  if (own.defined() || like.defined()) {
    TORCH_CHECK_VALUE(like.defined(), "[freeze] ", name,
                      " must be undefined, as the options say. Got ", own.sizes());
    check_tensor(name, own, like.sizes());
  }
}
inline void check_part(const std::string& name, const Optional& own, const Optional& like,
                       int64_t rows) {
  if (!own.tensor.defined()) return;
  if (like.tensor.defined() || rows < 0) return check_part(name, own.tensor, like.tensor, rows);
  check_tensor(name, own.tensor, {rows});
}
template <typename Impl>
void check_part(const std::string& name, const torch::nn::ModuleHolder<Impl>& own,
                const torch::nn::ModuleHolder<Impl>& like, int64_t) {
  if (own.is_empty() && like.is_empty()) return;
  TORCH_CHECK_VALUE(!own.is_empty(), "[freeze] ", name, " must be a module. Got an empty holder");
  TORCH_CHECK_VALUE(!like.is_empty(), "[freeze] ", name,
                    " must be an empty holder, as the options say. Got ", c10::str(*own.ptr()));
  check_module(name, *own.ptr(), *like.ptr());
}

/// `m.disentangled_attn, maybe(m.bias)`, 0: `self_attn`
inline std::string part_name(const char* names, std::size_t index) {
  std::string name = fields::field_name(names, index);
  name = name.substr(name.rfind('.') + 1);
  name = name.substr(0, name.find(')'));
  return name == "disentangled_attn" || name == "transformer_xl_attn" ? "self_attn" : name;
}

/// The parts of a module beside those of `like`.
template <typename Impl>
void check_parts(const std::string& name, const Impl& own, const Impl& like) {
  int64_t rows = -1;  // of a bias that `like` lacks
  if constexpr (requires { like.in_proj_weight; }) {
    if (like.in_proj_weight.defined()) rows = like.in_proj_weight.size(0);
  } else if constexpr (requires { like.weight; }) {
    if (like.weight.defined()) rows = like.weight.size(0);
  }
  visit_parts(own, [&](const char* names, const auto&... of_own) {
    visit_parts(like, [&](const char*, const auto&... of_like) {
      std::size_t index = 0;
      (check_part(name + "." + part_name(names, index++), of_own, of_like, rows), ...);
    });
  });
}

}  // namespace posenc::inference
