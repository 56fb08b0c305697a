// Folders with a frozen model in place of weights.

#include <c10/util/Exception.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <system_error>

#include "core/print_fields.h"
#include "models/config/model_folder.h"
#include "models/config/settings.h"
#include "models/frozen/freeze_encoder.h"
#include "models/frozen/frozen_file.h"
#include "models/frozen/frozen_folder.h"
#include "models/heads/config.h"
#include "models/lora/adapted_folder.h"
#include "models/save/copied_files.h"
#include "models/save/write_folder.h"
#include "models/sentence/colbert.h"
#include "models/sentence/stage_settings.h"
#include "models/seq2seq/load.h"
#include "models/types/model_types.h"
#include "posenc/models/inspect_folder.h"
#include "posenc/models/sentence_folder.h"
#include "posenc/weights/state_dict.h"

namespace posenc {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFolderCaller = "freeze_folder";
constexpr const char* kSettingsFile = "config.json";
constexpr uint64_t kMostText = 16'000'000;
constexpr const char* kFrozenAlready =
    "the model is frozen already; they are merged before that, while its weights are loaded";

// The class that config.json names; empty unless it names one alone.
std::string only_class(const Settings& config) {
  const nlohmann::json& classes = config.value("architectures");
  const bool is_one = classes.is_array() && classes.size() == 1 && classes[0].is_string();
  return is_one ? classes[0].get<std::string>() : "";
}

// Whether an encoder-decoder is frozen whole: with its head, unless it is a T5EncoderModel, or has
// an encoder that can be loaded alone.
bool is_seq2seq(const Settings& config, const hf::ModelType& type, bool with_head) {
  if (type.seq2seq == nullptr) return false;
  if (type.layers == nullptr) return true;
  const bool is_alone = only_class(config).ends_with("EncoderModel");
  return with_head && !is_alone && config.flag("is_encoder_decoder", true);
}

// Whether config.json names a class without a head, such as LlamaModel.
bool is_without_head(const Settings& config) {
  const std::string name = only_class(config);
  return name.ends_with("Model") && name.find("Head") == std::string::npos;  // GPT2LMHeadModel
}

FrozenContents contents_in(const std::string& folder, bool with_head, const FreezeOptions& options,
                           const LoadOptions& load) {
  const Settings config =
      model_config(kFolderCaller, config_folder(kFolderCaller, folder, load.base()));
  const auto* const type = hf::find_model_type(config.text("model_type", ""));
  if (with_head && inspect_head(folder, load))
    return frozen_contents(freeze(load_classifier(folder, std::nullopt, load), options));
  if (type != nullptr && is_seq2seq(config, *type, with_head))
    return frozen_contents(freeze(load_seq2seq_weights(folder, load).model, options));
  if (with_head && type != nullptr && type->decoder != nullptr && !is_without_head(config))
    return frozen_contents(freeze(load_decoder(folder, load), options));
  return frozen_contents(freeze(load_encoder(folder, load), options));
}

// Nothing of the model is written over, and nothing of another one stays, which would be read with
// this one: a tokenizer, stages, or weights.
void check_out(const std::string& folder, const std::string& out, const FolderParts& parts,
               const std::map<std::string, fs::path>& copied) {
  std::error_code unknown;
  std::set<std::string> folders = parts.stages;
  folders.insert("");
  for (const auto& [inner, uses_head] : parts.models) folders.insert(inner);
  for (const std::string& inner : folders)
    TORCH_CHECK_VALUE(!fs::equivalent(fs::path(folder) / inner, out, unknown), "[", kFolderCaller,
                      "] out must be another folder than that of the model, and than those of its "
                      "stages. Got ",
                      out);
  for (const std::string& inner : folders) {
    if (!fs::is_directory(fs::path(out) / inner, unknown)) continue;
    for (const auto& entry : fs::directory_iterator(fs::path(out) / inner)) {
      const std::string name = entry.path().filename().string(), whole = in_folder(inner, name);
      const bool is_replaced = copied.contains(whole) ||
                               (name == kFrozenFile && parts.models.contains(inner)) ||
                               (parts.has_projection && whole == kProjectionFile);
      if (is_replaced || name.front() == '.' || !entry.is_regular_file()) continue;
      TORCH_CHECK_VALUE(!is_weights(name) || name == kFrozenFile, "[", kFolderCaller, "] ", out,
                        ": out must hold no weights of a model. Got ", whole);
      TORCH_CHECK_VALUE(false, "[", kFolderCaller, "] ", out,
                        ": out must be empty, or hold what an earlier call wrote of a model with "
                        "the same files. Got ",
                        whole);
    }
  }
}

// The weights of Stanford's ColBERT that are not the encoder's, by their names.
StateDict projection_in(const std::string& folder, const LoadOptions& load, LoadReport& report) {
  const SentenceFolder read = read_sentence_folder(folder, SentenceKind::MultiVector, load.base());
  StateDict projection;
  for (const auto& stage : load_sentence_stages(read).front()->named_children())
    for (const auto& item : state_dict(*stage.value())) projection.insert(item.key(), item.value());
  for (const auto& item : projection) std::erase(report.unexpected, item.key());
  return projection;
}

void add_report(LoadReport& all, LoadReport own) {
  const auto append = [](auto& to, auto& from) {
    to.insert(to.end(), std::move_iterator(from.begin()), std::move_iterator(from.end()));
  };
  for (const auto names : {&LoadReport::loaded, &LoadReport::missing, &LoadReport::unexpected,
                           &LoadReport::cast, &LoadReport::ignored, &LoadReport::unused_patterns})
    append(all.*names, own.*names);
  append(all.tables, own.tables);
}

// `weights=Int8`: the fields, but for the number of threads, in which options differ from others.
std::string differences(const FreezeOptions& options, const FreezeOptions& others) {
  std::ostringstream text;
  fields::print_fields(text, FreezeOptions(options).threads(0), FreezeOptions(others).threads(0));
  return text.str();
}

// The number of threads is that of the process.
LoadFrozenOptions as_asked(const FreezeOptions& options) {
  return LoadFrozenOptions().threads(options.threads());
}

// The frozen model of a folder has the options that are asked for, or none are.
template <typename Frozen>
Frozen with_options(const char* caller, const std::string& folder, Frozen frozen,
                    const FreezeOptions& asked) {
  const FreezeOptions own = options_of(frozen);
  const std::string got = differences(asked, own);
  TORCH_CHECK_VALUE(got.empty() || differences(asked, FreezeOptions()).empty(), "[", caller, "] ",
                    folder,
                    ": the options of freeze() must be left out, or be those with which it was "
                    "frozen, ",
                    differences(own, asked), ". Got ", got);
  return frozen;
}

// Whether the rows that are pooled are those of the head alone: load_encoder() pools others or
// none.
bool pools_for_head(const std::string& folder, const EncoderOptions& frozen) {
  const Settings config = model_config(kFolderCaller, folder);
  const std::string part = frozen.patches() ? head_part(config, head::Kind::Image) : "";
  return read_encoder_config(config, part).options.pooling() != frozen.pooling();
}

}  // namespace

bool is_frozen_folder(const std::string& folder) {
  return io::may_exist((fs::path(folder) / kFrozenFile).string());
}

void freeze_folder(const std::string& folder, const std::string& out, const FreezeOptions& options,
                   const LoadOptions& load, bool with_head) {
  check_is_folder(kFolderCaller, folder);
  const FolderParts parts = parts_of(kFolderCaller, folder, load.base());
  const auto copied = files_of_model(kFolderCaller, folder, parts, load.base());
  check_out(folder, out, parts, copied);
  const auto writer = io::in_context(
      kFolderCaller, out, [&] { return std::make_unique<FolderWriter>(out); });  // before the work
  std::map<std::string, FrozenContents> models;
  LoadReport report;
  for (const auto& [inner, uses_head] : parts.models) {
    LoadReport own;
    FrozenContents contents = contents_in(path_of_model(folder, inner), with_head && uses_head,
                                          options, LoadOptions(load).report(&own));
    contents.settings[kSettingsFile] =
        digest_of(io::read_text(copied.at(in_folder(inner, kSettingsFile)).string(), kMostText));
    models.emplace(inner, std::move(contents));
    add_report(report, std::move(own));
  }
  StateDict projection;
  if (parts.has_projection) projection = projection_in(folder, load, report);
  if (load.report() != nullptr) *load.report() = std::move(report);
  io::in_context(kFolderCaller, out, [&] {
    for (const auto& [name, path] : copied) writer->add_copy(name, path.string());
    if (parts.has_projection) writer->add_weights(kProjectionFile, projection);
    for (const auto& [inner, contents] : models)
      writer->add_written(
          in_folder(inner, kFrozenFile),
          [contents = &contents](io::AtomicFile& file) { write_frozen(*contents, file); });
    writer->commit();
    return 0;
  });
}

FrozenEncoder load_and_freeze_encoder(const std::string& folder, const FreezeOptions& options,
                                      const LoadOptions& load) {
  constexpr const char* kEncoderCaller = "load_and_freeze_encoder";
  if (!is_frozen_folder(folder)) return freeze(load_encoder(folder, load), options);
  refuse_adapters(kEncoderCaller, load, kFrozenAlready);
  FrozenEncoder frozen =
      with_options(kEncoderCaller, folder, load_frozen_encoder(folder, as_asked(options)), options);
  TORCH_CHECK_VALUE(!frozen.options().transformer(), "[", kEncoderCaller, "] ", folder,
                    ": must be of an encoder. Got one with a decoder, below a head on that");
  return pools_for_head(folder, frozen.options()) ? inference::without_pooling(frozen) : frozen;
}

FrozenClassifier load_and_freeze_classifier(const std::string& folder, const FreezeOptions& options,
                                            const LoadOptions& load,
                                            std::optional<head::Kind> kind) {
  if (!is_frozen_folder(folder)) return freeze(load_classifier(folder, kind, load), options);
  refuse_adapters("load_and_freeze_classifier", load, kFrozenAlready);
  FrozenClassifier frozen =
      with_options("load_and_freeze_classifier", folder,
                   load_frozen_classifier(folder, as_asked(options)), options);
  const head::Kind own = frozen.options().kind();
  TORCH_CHECK_VALUE(!kind || *kind == own, "[load_and_freeze_classifier] ", folder,
                    ": kind must be that of the frozen head, ", fields::name_of_enumerator(own),
                    ". Got ", fields::name_of_enumerator(kind.value_or(own)));
  return frozen;
}

FrozenDecoder load_and_freeze_decoder(const std::string& folder, const FreezeOptions& options,
                                      const LoadOptions& load) {
  if (!is_frozen_folder(folder)) return freeze(load_decoder(folder, load), options);
  refuse_adapters("load_and_freeze_decoder", load, kFrozenAlready);
  return with_options("load_and_freeze_decoder", folder,
                      load_frozen_decoder(folder, as_asked(options)), options);
}

FrozenSeq2Seq load_and_freeze_seq2seq(const std::string& folder, const FreezeOptions& options,
                                      const LoadOptions& load) {
  constexpr const char* kCaller = "load_and_freeze_seq2seq";
  if (!is_frozen_folder(folder)) {
    Seq2SeqWeights loaded = load_seq2seq_weights(folder, load);
    return {freeze(std::move(loaded.model), options), loaded.pad, loaded.model_type, loaded.config};
  }
  refuse_adapters(kCaller, load, kFrozenAlready);
  const Settings config = model_config(kCaller, folder);
  const hf::ModelType& type = seq2seq_type(config);
  FrozenTransformer model =
      with_options(kCaller, folder, load_frozen_transformer(folder, as_asked(options)), options);
  const int64_t pad = seq2seq_pad(seq2seq_settings(config, type.type), type.type, model.options());
  return {std::move(model), pad, type.type, config};
}

}  // namespace posenc
