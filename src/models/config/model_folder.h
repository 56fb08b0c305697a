#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "models/config/settings.h"
#include "posenc/weights/error.h"
#include "posenc/weights/load.h"
#include "weights/load/source.h"

namespace torch::nn {
class Module;
}

namespace posenc {

/// The name of a frozen model in a folder, in place of weights.
constexpr const char* kFrozenFile = "frozen.safetensors";

/// Throws c10::ValueError, naming `caller`, for options that a loader of a model's folder does not
/// take.
void check_folder_options(const char* caller, const LoadOptions& options);

/// Throws WeightsError, naming `caller`, unless it is a folder. The name of a model on Hugging
/// Face's hub, where a path is expected, is an easy mistake, whose remedy it has.
void check_is_folder(const char* caller, const std::string& folder);

/// The weights in a folder that Hugging Face's save_pretrained() wrote: the path of
/// model.safetensors, pytorch_model.bin or the index of the shards of either. Throws WeightsError,
/// naming the public function `caller`, if there are none, and for a frozen model.
std::string weights_in(const char* caller, const std::string& folder);

/// Whether weights_in() takes a file of this name for the weights.
bool is_weights_file(std::string_view name);

/// The config.json of such a folder. Throws c10::ValueError, naming `caller`, for a folder whose
/// weights are quantised, or have adapters inside.
Settings model_config(const char* caller, const std::string& folder);

/// Adds rules to `map` that drop the layers of a file beyond those of the model, as transformers
/// does. `pattern` has an asterisk for each number of a layer, such as `encoder.layer.*.`; `counts`
/// has how many of them the model has. `prefix` is that of the names in the file.
void drop_later_layers(KeyMap& map, const io::TensorSource& source, const std::string& prefix,
                       const std::string& pattern, const std::vector<int64_t>& counts);

/// The entry of this name, or null.
const io::TensorSource::Entry* find_entry(const io::TensorSource& source, const std::string& name);

/// Whether the name of any entry begins with `stem`, such as `encoder.layers.5.`.
bool has_tensors_of(const io::TensorSource& source, const std::string& stem);

/// The error for a tensor that a file has to have; of a file where it is in its place a tensor that
/// cannot be read, such as a quantised one, with the name of that.
WeightsError missing_tensor(const std::string& name);
WeightsError missing_tensor(const io::TensorSource& source, const std::string& name);

/// Throws WeightsError unless all parameters, and the statistics of batch norms, are finite
/// numbers; those for which `may_be_minus_infinity` is true may also be -inf. `name_in_file`
/// translates names for the message.
void check_finite(const char* caller, const torch::nn::Module& model, const std::string& path,
                  const std::function<std::string(const std::string&)>& name_in_file,
                  const std::function<bool(const std::string&)>& may_be_minus_infinity);

}  // namespace posenc
