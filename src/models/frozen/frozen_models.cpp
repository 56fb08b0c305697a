// save_frozen(), load_frozen_encoder() and the others: what each kind of models is made of.

#include <ATen/ops/scalar_tensor.h>
#include <fmt/format.h>
#include <torch/utils.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "models/frozen/freeze_encoder.h"
#include "models/frozen/frozen_file.h"
#include "models/frozen/options_json.h"
#include "posenc/core/skip_init.h"

namespace posenc {
namespace {

using inference::FrozenArrays;
using FrozenCode = WeightsErrorCode;

bool has_more_rows(const at::Tensor& array, const at::Tensor& buffer) {
  const int64_t axes = buffer.dim();
  if (axes < 2 || array.dim() != axes || array.size(-2) < buffer.size(-2)) return false;
  std::vector<int64_t> sizes = buffer.sizes().vec();
  sizes[static_cast<std::size_t>(axes - 2)] = array.size(-2);
  return array.sizes() == at::IntArrayRef(sizes);
}

void take_one(const std::string& name, at::Tensor& own, const at::Tensor& array,
              bool may_have_more) {
  const bool fits = array.sizes() == own.sizes() || (may_have_more && has_more_rows(array, own));
  TORCH_CHECK_VALUE(fits && array.scalar_type() == own.scalar_type(), "array ", name, " must be ",
                    own.scalar_type(), " ", own.sizes(), ", by the options. Got ",
                    array.scalar_type(), " ", array.sizes());
  own.set_data(array);
}

// Makes the arrays of these names a module's parameters and buffers, without a copy. A parameter
// without one becomes a single NaN in its sizes: a frozen model has something else in its place. A
// buffer without one stays as it was computed; one may have more rows, as a table that has grown.
void take_tensors(torch::nn::Module& module, const inference::FrozenArrays& arrays) {
  const torch::NoGradGuard no_grad;
  const at::Tensor nothing = at::scalar_tensor(std::numeric_limits<float>::quiet_NaN(), at::kFloat);
  for (auto& item : module.named_parameters()) {
    const auto found = arrays.find(item.key());
    if (found != arrays.end()) {
      take_one(item.key(), item.value(), found->second, false);
    } else if (item.value().defined()) {
      item.value().set_data(nothing.expand(item.value().sizes()));
    }
  }
  for (auto& item : module.named_buffers()) {
    const auto found = arrays.find(item.key());
    if (found != arrays.end()) take_one(item.key(), item.value(), found->second, true);
  }
}

using inference::check_of;
using inference::source_of;

const inference::FrozenSource& source_of(const FrozenTransformer& frozen) {
  return inference::FrozenAccess::model(frozen)->source;
}
const inference::FrozenSource& source_of(const FrozenTransformerEncoder& frozen) {
  return inference::FrozenAccess::model(frozen)->source;
}
const inference::StaleCheck& check_of(const FrozenTransformer& frozen) {
  return inference::FrozenAccess::model(frozen)->stale_check;
}
const inference::StaleCheck& check_of(const FrozenTransformerEncoder& frozen) {
  return inference::FrozenAccess::model(frozen)->stale_check;
}

// Throws where the model that was frozen, if it still exists, has changed, and where it is not what
// such a module is by its options.
template <typename Frozen, typename Module>
void check_source(const Frozen& frozen, const Module& module) {
  check_of(frozen).check();
  std::string where;
  TORCH_CHECK_VALUE(!check_of(frozen).differs_from(module, where),
                    "[save_frozen] the model must be what its options describe, of which a loaded "
                    "one is made. Got other parts or options of ",
                    where);
}

// The names in `a` that are not in `b`.
std::vector<std::string> names_beyond(const FrozenArrays& a, const FrozenArrays& b) {
  std::vector<std::string> names;
  for (const auto& [name, array] : a)
    if (!b.contains(name)) names.push_back(name);
  return names;
}

// What a kind of models is: its name, and its module.
template <typename Frozen>
struct KindOf;
template <>
struct KindOf<FrozenEncoder> {
  static constexpr const char* kName = "Encoder";
  using Module = Encoder;
};
template <>
struct KindOf<FrozenClassifier> {
  static constexpr const char* kName = "Classifier";
  using Module = Classifier;
};
template <>
struct KindOf<FrozenDecoder> {
  static constexpr const char* kName = "Decoder";
  using Module = Decoder;
};
template <>
struct KindOf<FrozenTransformer> {
  static constexpr const char* kName = "Transformer";
  using Module = Transformer;
};
template <>
struct KindOf<FrozenTransformerEncoder> {
  static constexpr const char* kName = "TransformerEncoder";
  using Module = TransformerEncoder;
};

template <typename Frozen>
using ModuleOf = typename KindOf<Frozen>::Module;

// Throws for more layers than there are arrays, before they are made. `options` has no deep values.
void check_numbers_of_parts(const nlohmann::json& options, std::size_t arrays) {
  static constexpr std::string_view kNumbers[] = {"num_layers", "num_encoder_layers",
                                                  "num_decoder_layers", "num_feedforward_networks"};
  for (const auto& item : options.items()) {
    if (item.value().is_structured()) check_numbers_of_parts(item.value(), arrays);
    const bool is_number = std::ranges::find(kNumbers, item.key()) != std::end(kNumbers);
    TORCH_CHECK_VALUE(
        !is_number || !item.value().is_number_unsigned() || item.value().get<uint64_t>() <= arrays,
        "option ", item.key(), " must be at most the number of arrays, ", arrays, ". Got ",
        item.value().dump());
  }
}

// A module whose parameters are not set, and whose memory is therefore never used.
template <typename Frozen>
ModuleOf<Frozen> module_of(const FrozenContents& contents) {
  check_numbers_of_parts(contents.options, contents.arrays.size());
  const SkipInit skip;
  using Options = decltype(ModuleOf<Frozen>::ContainedType::options);
  ModuleOf<Frozen> module(options_from<Options>(contents.options));
  module->eval();
  return module;
}

// freeze() of a module that has the arrays, which is gone afterwards.
template <typename Frozen>
Frozen frozen_of(const FrozenContents& contents, ModuleOf<Frozen> module) {
  TORCH_CHECK_VALUE(
      contents.freeze.gemm() != GemmBackend::Autotune,
      "gemm must be Native or ATen: the choices of Autotune are those of one process");
  take_tensors(*module, contents.arrays);
  inference::WeightConverter convert(contents.freeze, *module, &contents.arrays);
  Frozen frozen = freeze_by(std::as_const(*module), convert);
  const FrozenArrays used = convert.arrays();
  LoadDetails details = {
      names_beyond(used, contents.arrays), names_beyond(contents.arrays, used), {}, {}};
  if (details.missing.empty() && details.unexpected.empty()) return frozen;
  const bool lacks = !details.missing.empty();
  const std::string& name = lacks ? details.missing.front() : details.unexpected.front();
  throw WeightsError(lacks ? FrozenCode::MissingKeys : FrozenCode::UnexpectedKeys,
                     lacks ? "must be in the file, by the options"
                           : "must be an array of the model that the options describe")
      .in_tensor(name)
      .with_details(std::move(details));
}

template <typename Frozen>
FrozenContents contents_of_frozen(const Frozen& model) {
  check_default_dtype("save_frozen");
  const inference::FrozenSource& source = source_of(model);
  TORCH_CHECK_VALUE(!source.arrays.empty(),
                    "[save_frozen] the model must be a whole one: one that is part of another is "
                    "saved with that");
  TORCH_CHECK_VALUE(source.options.gemm() != GemmBackend::Autotune,
                    "[save_frozen] gemm must be Native or ATen: the choices of Autotune are those "
                    "of one process. Got Autotune");
  FrozenContents contents = {KindOf<Frozen>::kName, json_of(model.options()), source.options,
                             source.arrays};
  for (auto& [name, array] : contents.arrays) array = array.contiguous();
  const auto module = module_of<Frozen>(contents);
  check_source(model, *module);
  if constexpr (std::is_same_v<Frozen, FrozenClassifier>)
    check_source(model.encoder(), *module->encoder);
  if constexpr (std::is_same_v<Frozen, FrozenDecoder>)
    check_source(inference::model_of(model), *module->model);
  try {
    frozen_of<Frozen>(contents, module);
  } catch (const WeightsError& error) {
    TORCH_CHECK_VALUE(false, "[save_frozen] the model must be what its options describe. Got ",
                      error.tensor(), ", which ", error.reason());
  }
  return contents;
}

template <typename Frozen>
void save_kind(const Frozen& model, const std::string& path) {
  const FrozenContents contents = contents_of_frozen(model);
  io::in_context("save_frozen", path, [&] {
    io::AtomicFile file(path);
    write_frozen(contents, file);
    file.commit();
  });
}

template <typename Frozen>
Frozen frozen_model_of(const FrozenContents& contents) {
  if (contents.kind != KindOf<Frozen>::kName)
    throw WeightsError(FrozenCode::Unsupported,
                       fmt::format("must be a frozen {}. Got one of kind {}", KindOf<Frozen>::kName,
                                   contents.kind));
  return frozen_of<Frozen>(contents, module_of<Frozen>(contents));
}

template <typename Frozen>
Frozen load_kind(const char* caller, const std::string& path, const LoadFrozenOptions& options) {
  std::optional<Frozen> loaded;
  with_frozen_file(caller, path, options, [&](const FrozenContents& contents) {
    loaded = frozen_model_of<Frozen>(contents);
  });
  return *loaded;
}

}  // namespace

FrozenContents frozen_contents(const FrozenEncoder& model) { return contents_of_frozen(model); }
FrozenContents frozen_contents(const FrozenClassifier& model) { return contents_of_frozen(model); }
FrozenContents frozen_contents(const FrozenDecoder& model) { return contents_of_frozen(model); }
FrozenContents frozen_contents(const FrozenTransformer& model) { return contents_of_frozen(model); }
FrozenContents frozen_contents(const FrozenTransformerEncoder& model) {
  return contents_of_frozen(model);
}

FreezeOptions options_of(const FrozenEncoder& model) { return source_of(model).options; }
FreezeOptions options_of(const FrozenClassifier& model) { return source_of(model).options; }
FreezeOptions options_of(const FrozenDecoder& model) { return source_of(model).options; }
FreezeOptions options_of(const FrozenTransformer& model) { return source_of(model).options; }

void save_frozen(const FrozenEncoder& model, const std::string& path) { save_kind(model, path); }
void save_frozen(const FrozenClassifier& model, const std::string& path) { save_kind(model, path); }
void save_frozen(const FrozenDecoder& model, const std::string& path) { save_kind(model, path); }
void save_frozen(const FrozenTransformer& model, const std::string& path) {
  save_kind(model, path);
}
void save_frozen(const FrozenTransformerEncoder& model, const std::string& path) {
  save_kind(model, path);
}

FrozenEncoder load_frozen_encoder(const std::string& path, const LoadFrozenOptions& options) {
  std::optional<FrozenEncoder> loaded;
  with_frozen_file("load_frozen_encoder", path, options, [&](const FrozenContents& contents) {
    if (contents.kind == KindOf<FrozenClassifier>::kName)
      loaded = frozen_model_of<FrozenClassifier>(contents).encoder();
    else if (contents.kind == KindOf<FrozenDecoder>::kName)
      loaded = inference::model_of(frozen_model_of<FrozenDecoder>(contents));
    else
      loaded = frozen_model_of<FrozenEncoder>(contents);
  });
  return *loaded;
}

FrozenClassifier load_frozen_classifier(const std::string& path, const LoadFrozenOptions& options) {
  return load_kind<FrozenClassifier>("load_frozen_classifier", path, options);
}

FrozenDecoder load_frozen_decoder(const std::string& path, const LoadFrozenOptions& options) {
  return load_kind<FrozenDecoder>("load_frozen_decoder", path, options);
}

FrozenTransformer load_frozen_transformer(const std::string& path,
                                          const LoadFrozenOptions& options) {
  return load_kind<FrozenTransformer>("load_frozen_transformer", path, options);
}

FrozenTransformerEncoder load_frozen_transformer_encoder(const std::string& path,
                                                         const LoadFrozenOptions& options) {
  return load_kind<FrozenTransformerEncoder>("load_frozen_transformer_encoder", path, options);
}

}  // namespace posenc
