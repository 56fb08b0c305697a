#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "models/heads/config.h"
#include "posenc/models/decoder.h"
#include "posenc/weights/state_dict.h"

namespace posenc {

/// The class in transformers of an encoder's class, such as `BertModel`, with a head. Throws
/// c10::ValueError for a head of images on a part of a pair.
std::string head_class(const std::string& base_class, const hf::ModelType& model,
                       const HeadConfig& head);

/// Sets the labels and the problem of a Classifier in a config.json.
void set_labels(nlohmann::json& config, const ClassifierOptions& options);

/// All names that files have for tensors of a head: of old releases, and of a bias that is tied.
std::set<std::string> names_of_head(const HeadStructure& structure);

/// The tensors of a head under the names that transformers has for them. Throws c10::ValueError,
/// naming save_pretrained, if `config`, of the file that is written, describes another head.
StateDict head_tensors(const ClassifierImpl& model, const HeadConfig& config,
                       const Settings& settings);

/// The output layer of a decoder, without a weight that is the table of tokens.
StateDict head_tensors(const DecoderImpl& model, const DecoderStructure& structure);

}  // namespace posenc
