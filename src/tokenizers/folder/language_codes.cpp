// posenc-budget: lists of languages
#include "tokenizers/folder/language_codes.h"

namespace posenc::text {

const std::vector<std::string>& mbart_codes() {
  static const std::vector<std::string> codes = {
      "ar_AR", "cs_CZ", "de_DE", "en_XX", "es_XX", "et_EE", "fi_FI", "fr_XX", "gu_IN",
      "hi_IN", "it_IT", "ja_XX", "kk_KZ", "ko_KR", "lt_LT", "lv_LV", "my_MM", "ne_NP",
      "nl_XX", "ro_RO", "ru_RU", "si_LK", "tr_TR", "vi_VN", "zh_CN",
  };
  return codes;
}

const std::vector<std::string>& mbart50_codes() {
  static const std::vector<std::string> codes = {
      "ar_AR", "cs_CZ", "de_DE", "en_XX", "es_XX", "et_EE", "fi_FI", "fr_XX", "gu_IN",
      "hi_IN", "it_IT", "ja_XX", "kk_KZ", "ko_KR", "lt_LT", "lv_LV", "my_MM", "ne_NP",
      "nl_XX", "ro_RO", "ru_RU", "si_LK", "tr_TR", "vi_VN", "zh_CN", "af_ZA", "az_AZ",
      "bn_IN", "fa_IR", "he_IL", "hr_HR", "id_ID", "ka_GE", "km_KH", "mk_MK", "ml_IN",
      "mn_MN", "mr_IN", "pl_PL", "ps_AF", "pt_XX", "sv_SE", "sw_KE", "ta_IN", "te_IN",
      "th_TH", "tl_XX", "uk_UA", "ur_PK", "xh_ZA", "gl_ES", "sl_SI",
  };
  return codes;
}

const std::vector<WhisperLanguage>& whisper_languages() {
  static const std::vector<WhisperLanguage> languages = {
      {"en", "english"},     {"zh", "chinese"},    {"de", "german"},
      {"es", "spanish"},     {"ru", "russian"},    {"ko", "korean"},
      {"fr", "french"},      {"ja", "japanese"},   {"pt", "portuguese"},
      {"tr", "turkish"},     {"pl", "polish"},     {"ca", "catalan"},
      {"nl", "dutch"},       {"ar", "arabic"},     {"sv", "swedish"},
      {"it", "italian"},     {"id", "indonesian"}, {"hi", "hindi"},
      {"fi", "finnish"},     {"vi", "vietnamese"}, {"he", "hebrew"},
      {"uk", "ukrainian"},   {"el", "greek"},      {"ms", "malay"},
      {"cs", "czech"},       {"ro", "romanian"},   {"da", "danish"},
      {"hu", "hungarian"},   {"ta", "tamil"},      {"no", "norwegian"},
      {"th", "thai"},        {"ur", "urdu"},       {"hr", "croatian"},
      {"bg", "bulgarian"},   {"lt", "lithuanian"}, {"la", "latin"},
      {"mi", "maori"},       {"ml", "malayalam"},  {"cy", "welsh"},
      {"sk", "slovak"},      {"te", "telugu"},     {"fa", "persian"},
      {"lv", "latvian"},     {"bn", "bengali"},    {"sr", "serbian"},
      {"az", "azerbaijani"}, {"sl", "slovenian"},  {"kn", "kannada"},
      {"et", "estonian"},    {"mk", "macedonian"}, {"br", "breton"},
      {"eu", "basque"},      {"is", "icelandic"},  {"hy", "armenian"},
      {"ne", "nepali"},      {"mn", "mongolian"},  {"bs", "bosnian"},
      {"kk", "kazakh"},      {"sq", "albanian"},   {"sw", "swahili"},
      {"gl", "galician"},    {"mr", "marathi"},    {"pa", "punjabi"},
      {"si", "sinhala"},     {"km", "khmer"},      {"sn", "shona"},
      {"yo", "yoruba"},      {"so", "somali"},     {"af", "afrikaans"},
      {"oc", "occitan"},     {"ka", "georgian"},   {"be", "belarusian"},
      {"tg", "tajik"},       {"sd", "sindhi"},     {"gu", "gujarati"},
      {"am", "amharic"},     {"yi", "yiddish"},    {"lo", "lao"},
      {"uz", "uzbek"},       {"fo", "faroese"},    {"ht", "haitian creole"},
      {"ps", "pashto"},      {"tk", "turkmen"},    {"nn", "nynorsk"},
      {"mt", "maltese"},     {"sa", "sanskrit"},   {"lb", "luxembourgish"},
      {"my", "myanmar"},     {"bo", "tibetan"},    {"tl", "tagalog"},
      {"mg", "malagasy"},    {"as", "assamese"},   {"tt", "tatar"},
      {"haw", "hawaiian"},   {"ln", "lingala"},    {"ha", "hausa"},
      {"ba", "bashkir"},     {"jw", "javanese"},   {"su", "sundanese"},
      {"yue", "cantonese"},
  };
  return languages;
}

const std::vector<WhisperLanguage>& other_whisper_names() {
  static const std::vector<WhisperLanguage> languages = {
      {"my", "burmese"},       {"ca", "valencian"}, {"nl", "flemish"},   {"ht", "haitian"},
      {"lb", "letzeburgesch"}, {"ps", "pushto"},    {"pa", "panjabi"},   {"ro", "moldavian"},
      {"ro", "moldovan"},      {"si", "sinhalese"}, {"es", "castilian"}, {"zh", "mandarin"},
  };
  return languages;
}

}  // namespace posenc::text
