#include "tokenizers/folder/classes.h"
#include "tokenizers/folder/components.h"

// The classes with BERT's normaliser, pre-tokenizer and WordPiece.
namespace posenc::text {
namespace {

using Json = nlohmann::json;
using Named = ClassBuilder::Named;

Json or_null(std::optional<bool> value) { return value ? Json(*value) : Json(); }

void begin_word_piece(ClassBuilder& builder, const Named& unk, bool clean_text,
                      const std::string& decoder_prefix, bool lowercase) {
  const Arguments& arguments = builder.arguments;
  ModelDefinition& model = builder.begin_model(ModelDefinition::Kind::WordPiece, {"vocab.txt"});
  model.unk_token = ClassBuilder::text_of(unk);
  model.continuing_subword_prefix = "##";
  builder.definition.normalizer = {
      {"type", "BertNormalizer"},
      {"clean_text", clean_text},
      {"handle_chinese_chars", arguments.flag("tokenize_chinese_chars", true)},
      {"strip_accents", or_null(arguments.optional_flag("strip_accents"))},
      {"lowercase", arguments.flag("do_lower_case", lowercase)}};
  builder.definition.pre_tokenizer = components::plain("BertPreTokenizer");
  builder.definition.decoder = {
      {"type", "WordPiece"}, {"prefix", decoder_prefix}, {"cleanup", true}};
}

// [CLS] A [SEP], and B [SEP] of type 1.
void set_cls_sep(ClassBuilder& builder) {
  const std::string cls = builder.text_or_none("cls_token"),
                    sep = builder.text_or_none("sep_token");
  const std::string single = cls + ":0 $A:0 " + sep + ":0";
  builder.set_template_with_ids(
      pieces_of(single), pieces_of(single + " $B:1 " + sep + ":1"),
      {{cls, builder.named_id("cls_token", 2)}, {sep, builder.named_id("sep_token", 3)}});
}

void bert_names(ClassBuilder& builder) {
  builder.named("sep_token", "[SEP]");
  builder.named("pad_token", "[PAD]");
  builder.named("cls_token", "[CLS]");
  builder.named("mask_token", "[MASK]");
}

void construct_without_types(ClassBuilder& builder) {
  begin_word_piece(builder, builder.named("unk_token", "[UNK]"), true, "##", true);
  bert_names(builder);
  builder.finish();
  set_cls_sep(builder);
}

void construct_bert(ClassBuilder& builder) {
  builder.settings.model_input_names = {"input_ids", "token_type_ids", "attention_mask"};
  construct_without_types(builder);
}

// They keep do_lower_case from BERT's constructor, so that text is always lowered.
void construct_dpr(ClassBuilder& builder) {
  builder.arguments.set("do_lower_case", true);
  construct_bert(builder);
}

void construct_dpr_reader(ClassBuilder& builder) {
  builder.arguments.set("do_lower_case", true);
  construct_without_types(builder);
}

// Those without a constructor of their own, so that tokenizer.json stays, with BERT's template.
void construct_bert_of_file(ClassBuilder& builder) {
  if (!builder.has_file()) return construct_without_types(builder);
  builder.take_file();
  builder.named("unk_token", "[UNK]");
  bert_names(builder);
  builder.finish();
  set_cls_sep(builder);
}

void construct_conv_bert(ClassBuilder& builder) {
  builder.settings.model_input_names = {"input_ids", "token_type_ids", "attention_mask"};
  construct_bert_of_file(builder);
}

void construct_mpnet(ClassBuilder& builder) {
  begin_word_piece(builder, builder.flagged("unk_token", "[UNK]", false), true, "##", true);
  builder.flagged("bos_token", "<s>", false);
  builder.flagged("eos_token", "</s>", false);
  builder.flagged("sep_token", "</s>", false);
  builder.flagged("cls_token", "<s>", false);
  builder.flagged("pad_token", "<pad>", false);
  builder.flagged("mask_token", "<mask>", true);
  builder.finish();
  builder.set_roberta({builder.text_or_none("sep_token"), builder.named_id("sep_token", 2)},
                      {builder.text_or_none("cls_token"), builder.named_id("cls_token", 0)}, true,
                      false);
}

void construct_funnel(ClassBuilder& builder) {
  begin_word_piece(builder, builder.named("unk_token", "<unk>"),
                   builder.arguments.flag("clean_text", true),
                   builder.arguments.text("wordpieces_prefix", "##"), true);
  builder.named("sep_token", "<sep>");
  builder.named("pad_token", "<pad>");
  builder.named("cls_token", "<cls>");
  builder.named("mask_token", "<mask>");
  builder.named("bos_token", "<s>");
  builder.named("eos_token", "</s>");
  builder.finish();
  const std::string cls = builder.named_text("cls_token"), sep = builder.named_text("sep_token");
  const std::string single = cls + ":2 $A:0 " + sep + ":0";
  builder.set_template(pieces_of(single), pieces_of(single + " $B:1 " + sep + ":1"), {cls, sep});
}

void construct_splinter(ClassBuilder& builder) {
  begin_word_piece(builder, builder.named("unk_token", "[UNK]"), true, "##", true);
  bert_names(builder);
  builder.named("question_token", "[QUESTION]");
  builder.finish();
  const std::string cls = builder.named_text("cls_token"), sep = builder.named_text("sep_token");
  const std::string question = builder.named_text("question_token");
  const std::string begin = cls + ":0 $A:0 ";
  const std::string pair = builder.settings.pads_left
                               ? begin + sep + ":0 $B:1 " + question + " . " + sep + ":1"
                               : begin + question + " . " + sep + ":0 $B:1 " + sep + ":1";
  builder.set_template(pieces_of(begin + sep + ":0"), pieces_of(pair), {cls, sep, question, "."});
}

}  // namespace

Constructor word_piece_constructor(std::string_view name) {
  if (name == "BertTokenizer") return construct_bert;
  if (name == "DistilBertTokenizer") return construct_without_types;
  if (name == "DPRContextEncoderTokenizer" || name == "DPRQuestionEncoderTokenizer")
    return construct_dpr;
  if (name == "DPRReaderTokenizer") return construct_dpr_reader;
  if (name == "DPRReaderTokenizerFast") return construct_bert_of_file;
  if (name == "ConvBertTokenizer" || name == "DPRContextEncoderTokenizerFast" ||
      name == "DPRQuestionEncoderTokenizerFast") {
    return construct_conv_bert;
  }
  if (name == "MPNetTokenizer") return construct_mpnet;
  if (name == "FunnelTokenizer") return construct_funnel;
  if (name == "SplinterTokenizer") return construct_splinter;
  return nullptr;
}

}  // namespace posenc::text
