#pragma once

// Describes what a search found.

#include "identify/search.h"
#include "posenc/identify.h"

namespace posenc::identification {

Identification report(const SearchResult& found);

}  // namespace posenc::identification
