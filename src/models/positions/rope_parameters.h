#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/positions/scaling.h"
#include "posenc/positions/rotary/rotary.h"

namespace posenc {

/// The rotary embedding that a configuration gives to layers of type `layer_type`, with everything
/// that the model's configuration class would fill in.
///
/// Throws c10::ValueError for a layer type that the model does not have, for one that is missing
/// where the model has several, and for keys of the wrong kind.
RopeSettings rope_settings(const Settings& config, const hf::ModelType& model,
                           const std::string& layer_type);

/// A number of a layer of type `layer_type`, which `per_layer_config` may have for its layers.
std::optional<int64_t> layer_number(const Settings& config, const std::string& layer_type,
                                    const std::string& name);

/// The same of layer `number`.
std::optional<int64_t> number_in_layer(const Settings& config, int64_t number,
                                       const std::string& name);

/// Width of a head that the frequencies are computed for.
int64_t rotary_head_dim(const Settings& config, const hf::ModelType& model,
                        const std::string& layer_type);

/// The parameters of the class that `preset` mirrors, by the names they have there, besides those
/// of a config.json. Classes of transformers have none.
std::vector<std::string> package_parameters(std::string_view preset);

/// Sets those of them that `given` contains.
///
/// Errors: c10::ValueError for a value of the wrong kind.
void apply_package_parameters(std::string_view preset, const Settings& given,
                              RotaryOptions& options);

}  // namespace posenc
