#pragma once

#include <c10/util/FunctionRef.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "models/config/described_module.h"
#include "models/config/model_folder.h"
#include "models/encoder/config.h"
#include "models/types/zero_biases.h"
#include "weights/load/load_plan.h"
#include "weights/load/source.h"

namespace posenc {

/// A layer, or all of them by patterns, for which a family adds rules.
struct LayerNames {
  KeyMap& map;
  const EncoderConfig& config;
  const EncoderLayerKeys& keys;
  const std::string &from, &to;  ///< what names begin with in the file, and in an Encoder

  /// Weights and biases `name`, such as `linear1.*`, of parts that the file has apart; those that
  /// are empty are left out.
  void add(const std::vector<std::string>& parts, const std::string& name) const;
};

/// The projection of queries, keys and values that the layer has as one, whose weight and bias
/// `change` makes a source of.
void name_packed(const LayerNames& names,
                 c10::function_ref<KeySource(const std::string& in_file)> change);
/// The same with the queries, keys and values of one head after another.
void name_heads_of_layer(const LayerNames& names);

/// A norm. Old files have gamma and beta, as TensorFlow calls them.
void add_norm(KeyMap& map, const std::string& from, const std::string& to);

/// Drops what the class has only with a switch that is off here, which transformers then ignores in
/// a file.
void drop_unused(KeyMap& map, const std::vector<std::string>& patterns);

/// The same for the table of positions of patches, if there is none.
void drop_absent_positions(KeyMap& map, const EncoderConfig& config);

/// The prefix of the encoder's tensors in a file: `given`, followed by that of models with a head
/// or by nothing. Throws WeightsError if the file has no first layer with either.
std::string encoder_prefix(const EncoderConfig& config, const io::TensorSource& source,
                           const std::string& given);

/// Which of the structure's names of the layers' tensors the file has.
int64_t encoder_layout(const EncoderConfig& config, const io::TensorSource& source,
                       const std::string& prefix);

/// The words of a text, with blanks between.
std::vector<std::string> words_in(const char* text);

/// How the tensors of a file become an Encoder's, by all names that files have for them.
KeyMap encoder_key_map(const EncoderConfig& config);

/// Rules that drop the layers of a file which a configuration with fewer does not have.
KeyMap encoder_later_layers(const EncoderConfig& config, const io::TensorSource& source,
                            const std::string& prefix);

/// Rules that drop what a class has beside the encoder, as far as it is known.
KeyMap encoder_dropped_map(const EncoderStructure& structure);

/// What the names of a layer's tensors begin with, up to its number: one pattern, or in XLM one for
/// each kind of part.
std::set<std::string> encoder_layer_patterns(const EncoderLayerKeys& keys);

/// The part by whose name a file's layers are found: the queries, if the layers have an attention.
const char* EncoderLayerKeys::*first_part_of_layer(const EncoderConfig& config);

/// The names that the tensor `part` of layer `index` may have in a file, such as
/// `encoder.layer.0.attention.self.query.weight`.
std::vector<std::string> encoder_layer_names(const EncoderConfig& config, const std::string& prefix,
                                             int64_t index, const char* EncoderLayerKeys::*part);

/// The names of the pooler's weight and bias in a file; none for a model without a pooler.
std::vector<std::string> encoder_pooler_names(const EncoderConfig& config,
                                              const std::string& prefix);

/// The names that the table of tokens may have in a file; none for an encoder without one.
std::vector<std::string> encoder_token_table_names(const EncoderConfig& config,
                                                   const std::string& prefix);

/// The biases of queries, keys and values that the class has not, where it has some of them: zeros
/// in an Encoder, which has all or none.
std::vector<AbsentBias> absent_biases(const EncoderConfig& config, const std::string& prefix);

/// How the tensors of a file become an Encoder's. Those of a head beside it are dropped, and with
/// `drops_later` those of layers beyond its own, as transformers does.
LoadOptions encoder_load_options(const EncoderConfig& config, const io::TensorSource& source,
                                 const std::string& prefix, bool drops_later = true);
io::FormatNames encoder_format_names(const EncoderConfig& config);

/// The plan to load an Encoder from a file in `folder` with these tensors.
std::unique_ptr<io::LoadPlan> encoder_plan(const char* caller, const std::string& folder,
                                           const EncoderConfig& config,
                                           const io::TensorSource& source, const LoadOptions& load);

/// The names of an Encoder's tensors in a file with the layout and the prefix of the origin in its
/// options, for io::names_in_file(); a name that is not found there has only the prefix before it.
LoadOptions encoder_save_options(const EncoderConfig& config);

}  // namespace posenc
