#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/encoder/config.h"
#include "models/types/heads_structures.h"
#include "posenc/models/classifier.h"

namespace posenc {

/// A head as a config.json describes it.
struct HeadConfig {
  const HeadStructure& structure;
  head::Kind kind;
  EncoderHeadOptions options;  ///< tied as the structure is; the file may say otherwise
  std::vector<std::string> labels;
  std::optional<head::Problem> problem;
};

/// Whether the outputs of a head of this kind have labels.
inline bool has_labels(head::Kind kind) {
  using head::Kind;
  return kind != Kind::Question && kind != Kind::Masked && kind != Kind::Choice;
}

/// What the class of a head of this kind has after the name of the model: `ForMaskedLM`.
const char* class_ending(head::Kind kind);
/// What config.json calls a problem.
std::string problem_name(head::Problem problem);
/// The part of the config.json of a pair of encoders that a head of `kind`, or of the kind that it
/// names, is on: EncoderConfig's `part`.
std::string head_part(const Settings& config, std::optional<head::Kind> kind);

/// Reads the head of `kind`, or of the kind that `architectures` names, and changes what the
/// encoder in `encoder` pools to what the head takes. Throws c10::ValueError as load_classifier()
/// documents.
HeadConfig read_head_config(EncoderConfig& encoder, std::optional<head::Kind> kind);

}  // namespace posenc
