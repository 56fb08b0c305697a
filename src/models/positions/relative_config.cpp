#include "posenc/models/relative_config.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <iterator>

#include "models/config/settings.h"
#include "models/types/model_types.h"

namespace posenc {
namespace {

constexpr int64_t kMost = int64_t{1} << 31;

// What is read of a configuration.
struct RelativeReader {
  const Settings& config;
  bool decoder;
  RelativeOptions& options;

  // A setting of the preset: that of the configuration, or the class's default.
  void integer(const char* setting, const char* key, int64_t least = 1) const {
    options.settings[setting] = config.integer(key, least, kMost);
  }
  void heads(const char* key = "num_attention_heads") const {
    options.settings["heads"] = config.integer(key, 1, kMost);
  }
  // Height and width; a number stands for both.
  std::vector<int64_t> sides(const char* key) const {
    if (config.value(key).is_array()) {
      const auto sides = config.integers_if(key).value_or(std::vector<int64_t>());
      if (sides.size() != 2 || sides[0] < 1 || sides[1] < 1)
        config.refuse(key, "must be an integer, or height and width");
      return sides;
    }
    const int64_t side = config.integer(key, 1, kMost);
    return {side, side};
  }
  void patches(const char* setting) const {
    const auto image = sides("image_size"), patch = sides("patch_size");
    if (image[0] < patch[0] || image[1] < patch[1])
      config.refuse("patch_size", "must be at most image_size");
    options.settings[setting] = std::vector<int64_t>{image[0] / patch[0], image[1] / patch[1]};
  }
  void need(const char* key, const std::string& value) const {
    if (config.text_if(key) != value)
      config.refuse(key, "must be " + value + ", as the others have no relative positions");
  }
  // The table of the preset that the kind of positions names.
  void by_kind(const char* relative, const char* relative_key) const {
    const std::string kind = config.text_if("position_embeddings_type").value_or("");
    if (kind != "relative" && (kind != "relative_key" || relative_key[0] == '\0'))
      config.refuse("position_embeddings_type", "must be one with relative positions");
    options.preset = kind == "relative" ? relative : relative_key;
    if (kind == "relative") return;
    integer("left", "left_max_position_embeddings", 0);
    integer("right", "right_max_position_embeddings", 0);
  }
};

void read_t5(const RelativeReader& of) {
  of.integer("num_buckets", "relative_attention_num_buckets");
  of.integer("max_distance", "relative_attention_max_distance");
  of.heads("num_heads");
  if (of.options.preset != "pix2struct") of.options.settings["bidirectional"] = !of.decoder;
}

void read_mpnet(const RelativeReader& of) { of.heads(); }

void read_wavlm(const RelativeReader& of) {
  of.integer("num_buckets", "num_buckets");
  of.integer("max_distance", "max_bucket_distance");
  of.heads();
}

void read_cpmant(const RelativeReader& of) {
  of.integer("num_buckets", "position_bias_num_buckets");
  of.integer("max_distance", "position_bias_max_distance");
  of.integer("segments", "segment_types");
  of.heads();
}

void read_layoutlm(const RelativeReader& of) {
  of.integer("num_buckets", "rel_pos_bins");
  of.integer("max_distance", "max_rel_pos");
  of.integer("num_buckets_2d", "rel_2d_pos_bins");
  of.integer("max_distance_2d", "max_rel_2d_pos");
}

void read_prophetnet(const RelativeReader& of) {
  of.integer("num_buckets", "num_buckets");
  of.integer("max_distance", "relative_max_distance");
  of.integer("ngram", "ngram");
}

void read_bloom(const RelativeReader& of) { of.heads("n_head"); }

void read_falcon(const RelativeReader& of) {
  if (!of.config.flag("alibi"))
    of.config.refuse("alibi", "must be true: the others have rotary positions");
  of.heads();
}

void read_mpt(const RelativeReader& of) {
  // MptAttentionConfig, whose defaults are not among those of the classes of model types.
  const Settings attention = of.config.inside_if_given("attn_config");
  if (!attention.flag_if("alibi").value_or(true))
    attention.refuse("alibi", "must be true: the others have no relative positions");
  of.options.settings["bias_max"] = attention.real_if("alibi_bias_max").value_or(8.0);
  of.heads("n_heads");
}

void read_swin(const RelativeReader& of) {
  of.options.settings["window"] = of.sides("window_size");
}

void read_cosine(const RelativeReader& of) {
  of.options.settings["window"] = of.sides("window_size");
  const auto pretrained = of.config.integers_if("pretrained_window_sizes");
  // One for each stage; checkpoints have the same in all.
  if (pretrained && std::adjacent_find(pretrained->begin(), pretrained->end(),
                                       std::not_equal_to<>()) != pretrained->end())
    of.config.refuse("pretrained_window_sizes", "must be the same in all stages");
  of.options.settings["pretrained_window"] =
      pretrained && !pretrained->empty() ? pretrained->front() : int64_t{0};
}

void read_beit(const RelativeReader& of) {
  if (!of.config.flag("use_relative_position_bias") &&
      !of.config.flag("use_shared_relative_position_bias"))
    of.config.refuse("use_relative_position_bias", "must be true, or the shared one");
  of.patches("window");
  of.heads();
}

void read_sam(const RelativeReader& of) {
  if (!of.config.flag("use_rel_pos")) of.config.refuse("use_rel_pos", "must be true");
  of.patches("table_grid");
}

void read_deberta(const RelativeReader& of) {
  if (!of.config.flag("relative_attention")) of.config.refuse("relative_attention", "must be true");
  int64_t most = of.config.integer_if("max_relative_positions").value_or(-1);
  if (most < 1) most = of.config.integer("max_position_embeddings", 1, kMost);
  of.options.settings["max_relative"] = most;
  const nlohmann::json& given = of.config.value("pos_att_type");
  std::vector<std::string> terms;
  if (given.is_array()) {
    for (const auto& term : given) {
      if (!term.is_string()) of.config.refuse("pos_att_type", "must be a list of words");
      terms.push_back(term);
    }
  } else if (given.is_string()) {  // as older files have it: c2p|p2c
    const std::string text = given;
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t end = std::min(text.find('|', begin), text.size());
      terms.push_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  of.options.settings["terms"] = terms;
  if (of.options.preset == "deberta") return;
  // The configuration class of DeBERTa v2 has neither; its layers take these where a file has none.
  of.options.settings["buckets"] = of.config.integer("position_buckets", -1, -1, kMost);
  of.options.settings["share_key"] = of.config.flag("share_att_key", false);
}

void read_speecht5(const RelativeReader& of) {
  of.integer("max_length", "encoder_max_relative_position");
}

void read_vits(const RelativeReader& of) { of.integer("reach", "window_size"); }

void read_funnel(const RelativeReader& of) {
  const std::string kind = of.config.text("attention_type");
  if (kind != "relative_shift" && kind != "factorized")
    of.config.refuse("attention_type", "must be relative_shift or factorized");
  if (kind == "factorized") of.options.preset = "funnel_factorized";
}

void read_conformer(const RelativeReader& of) { of.need("position_embeddings_type", "relative"); }
void read_bert_conformer(const RelativeReader& of) {
  of.by_kind("wav2vec2_bert_relative", "wav2vec2_bert_relative_key");
}
void read_seamless(const RelativeReader& of) { of.by_kind("seamless_m4t_relative", ""); }
void read_seamless_v2(const RelativeReader& of) {
  of.need("position_embeddings_type", "relative_key");
  of.integer("left", "left_max_position_embeddings", 0);
  of.integer("right", "right_max_position_embeddings", 0);
}
void read_nothing(const RelativeReader&) {}

struct RelativeRow {
  const char* type;
  const char* preset;
  void (*read)(const RelativeReader& of);
  const char* weight = "";  // the table in the files of 5.23, and in older ones
  const char* old_weight = "";
  bool transposed = false;
};

constexpr const char* kT5 = "*block.0.layer.0.SelfAttention.relative_attention_bias.weight";
constexpr const char* kSwin = "*.attention.relative_position_bias.relative_position_bias_table";
constexpr const char* kOldSwin = "*.attention.self.relative_position_bias_table";

constexpr RelativeRow kRelativeRows[] = {
    {"beit", "beit", read_beit, "*relative_position_bias.relative_position_bias_table"},
    {"bloom", "bloom_scores", read_bloom},
    {"clap_audio_model", "clap_swin", read_swin, kOldSwin, kSwin},
    {"cpmant", "cpmant", read_cpmant, "*position_bias.relative_attention_bias"},
    {"data2vec-vision", "data2vec_vision", read_beit,
     "*relative_position_bias.relative_position_bias_table"},
    {"deberta", "deberta", read_deberta},
    {"deberta-v2", "deberta_v2", read_deberta},
    {"donut-swin", "donut_swin", read_swin, kOldSwin, kSwin},
    {"falcon", "falcon_scores", read_falcon},
    {"fastspeech2_conformer", "fastspeech2_conformer", read_nothing},
    {"funnel", "funnel", read_funnel},
    {"layoutlmv2", "layoutlmv2", read_layoutlm, "*encoder.rel_pos_bias.weight", "", true},
    {"layoutlmv3", "layoutlmv3", read_layoutlm, "*encoder.rel_pos_bias.weight", "", true},
    {"longt5", "longt5", read_t5, kT5},
    {"maskformer-swin", "maskformer_swin", read_swin, kOldSwin, kSwin},
    {"mpnet", "mpnet", read_mpnet, "*encoder.relative_attention_bias.weight"},
    {"mpt", "mpt", read_mpt},
    {"mt5", "mt5", read_t5, kT5},
    {"pix2struct_text_model", "pix2struct", read_t5,
     "*layer.0.self_attention.attention.relative_attention_bias.weight"},
    {"pop2piano", "pop2piano", read_t5, kT5},
    {"prophetnet", "prophetnet", read_prophetnet},
    {"sam_hq_vision_model", "sam_hq", read_sam},
    {"sam_vision_model", "sam", read_sam},
    {"seamless_m4t", "seamless_m4t_relative", read_seamless},
    {"seamless_m4t_v2", "seamless_m4t_v2_relative_key", read_seamless_v2},
    {"sew-d", "sew_d", read_deberta},
    {"speecht5", "speecht5", read_speecht5},
    {"swin", "swin_scores", read_swin, kSwin, kOldSwin},
    {"swin2sr", "swin2sr", read_cosine},
    {"swinv2", "swinv2", read_cosine},
    {"switch_transformers", "switch_transformers", read_t5, kT5},
    {"t5", "t5", read_t5, kT5},
    {"udop", "udop", read_t5, kT5},
    {"umt5", "umt5", read_t5, "*layer.0.SelfAttention.relative_attention_bias.weight"},
    {"vits", "vits", read_vits},
    {"wav2vec2-bert", "wav2vec2_bert_relative", read_bert_conformer},
    {"wav2vec2-conformer", "wav2vec2_conformer_relative", read_conformer},
    {"wavlm", "wavlm_gated", read_wavlm, "*attention.rel_attn_embed.weight"},
    {"xlnet", "xlnet", read_nothing},
};

}  // namespace

std::vector<RelativeModel> relative_models() {
  std::vector<RelativeModel> models;
  for (const RelativeRow& row : kRelativeRows) models.push_back({row.type, row.preset});
  return models;
}

RelativeOptions relative_options_from_hf(const std::string& config, const std::string& stack) {
  TORCH_CHECK_VALUE(stack == "encoder" || stack == "decoder",
                    "[relative_options_from_hf] stack must be encoder or decoder. Got ", stack);
  const Settings file = Settings::path_or_text("relative_options_from_hf", config);
  const std::string type = file.text_if("model_type").value_or("");
  const auto row = std::find_if(std::begin(kRelativeRows), std::end(kRelativeRows),
                                [&](const RelativeRow& known) { return known.type == type; });
  if (row == std::end(kRelativeRows)) {
    std::vector<std::string> known;
    for (const RelativeRow& one : kRelativeRows) known.emplace_back(one.type);
    hf::refuse_model_type(
        file.source(), "`model_type` must be one whose relative positions are known", type, known);
  }
  RelativeOptions options;
  options.preset = row->preset;
  const Settings settings = file.of(type);
  row->read({settings, stack == "decoder", options});
  for (const char* name : {row->weight, row->old_weight}) {
    if (*name != '\0')
      options.key_map.push_back(
          {row->transposed ? KeySource::transposed(name) : KeySource(name), "weight"});
  }
  return options;
}

}  // namespace posenc
