# bash completion of zarrc; written by zarrc completion
_zarrc()
{
    local cur prev words='' command='' i
    cur=${COMP_WORDS[COMP_CWORD]}
    prev=${COMP_WORDS[COMP_CWORD - 1]}
    [[ $cur == = ]] && cur=''
    [[ $prev == = ]] && prev=${COMP_WORDS[COMP_CWORD - 2]}
    for ((i = 1; i < COMP_CWORD; i++)); do
        if [[ ${COMP_WORDS[i]} != -* ]]; then
            command=${COMP_WORDS[i]}
            break
        fi
    done
    case $command,$prev in
    *,--locks) words='os none' ;;
    *,--symlinks) words='within deny follow' ;;
    *,--progress) words='auto bar lines json none' ;;
    *,--color) words='auto always never' ;;
    *,--log-level) words='error warn info debug trace' ;;
    cat,--format|cat,-F) words='text csv npy raw elements json' ;;
    cat,--trust) words='verified full none' ;;
    cat,--missing-chunks) words='fill error' ;;
    cat,--lost) words='nan fill' ;;
    create,--zarr-format) words='2 3' ;;
    create,--separator) words='/ .' ;;
    create,--order) words='C F' ;;
    import,--format|import,-F) words='auto npy raw json elements lines' ;;
    import,--byte-order) words='little big' ;;
    import,--zarr-format) words='2 3' ;;
    import,--separator) words='/ .' ;;
    import,--order) words='C F' ;;
    export,--format|export,-F) words='text csv npy raw elements json' ;;
    export,--trust) words='verified full none' ;;
    export,--missing-chunks) words='fill error' ;;
    export,--lost) words='nan fill' ;;
    explain,--trust) words='verified full none' ;;
    append,--format|append,-F) words='npy raw json elements lines' ;;
    append,--byte-order) words='little big' ;;
    reencode,--zarr-format) words='2 3' ;;
    reencode,--separator) words='/ .' ;;
    reencode,--order) words='C F' ;;
    reencode,--rounding) words='exact nearest-even towards-zero towards-positive towards-negative nearest-away' ;;
    reencode,--out-of-range) words='error clamp wrap' ;;
    reencode,--missing-chunks) words='fill error' ;;
    migrate,--zarr-format) words='2 3' ;;
    verify,--missing-chunks) words='fill error' ;;
    diff,--missing-chunks) words='fill error' ;;
    plot,--map|plot,-m) words='viridis cividis magma gray coolwarm turbo' ;;
    plot,--origin) words='upper lower' ;;
    plot,--aspect) words='auto equal fill' ;;
    summary,--format|summary,-F) words='text csv' ;;
    summary,--trust) words='verified full none' ;;
    summary,--missing-chunks) words='fill error' ;;
    esac
    if [[ -n $words ]]; then
        COMPREPLY=($(compgen -W "$words" -- "$cur"))
        return
    fi
    if [[ -z $command && $cur != -* ]]; then
        words='info ls tree cat attrs create import export explain cp mv rm resize append reencode migrate verify diff clean repack consolidate plot summary list calibrate version help completion'
    elif [[ $cur == -* ]]; then
        words=' --json -j --max-threads --mem --limit --untrusted --lock-wait --locks --symlinks --store-option --progress --color --plugin --log-level -q --quiet -v --verbose -h --help'
        case $command in
        info) words+=' -s --stats -m --metadata' ;;
        ls) words+=' -l --long -R --recursive --stored' ;;
        tree) words+=' --ascii' ;;
        cat) words+=' -F --format --field --nearest --decode --memory --trust --missing-chunks --skip-damaged --lost' ;;
        attrs) words+=' -t --text --replace -r --recursive --no-consolidate' ;;
        create) words+=' --shape -t --dtype -l --like --document -c --chunks -s --shards -C --codec --index-codec --checksum --index-at-start --fill --dims -a --attributes --zarr-format --key-encoding --separator --order --keep-fill -g --group -f --force --if-missing --no-consolidate' ;;
        import) words+=' -F --format -t --dtype --nearest --shape --byte-order --offset --field -l --like -c --chunks -s --shards -C --codec --index-codec --checksum --index-at-start --fill --dims -a --attributes --zarr-format --key-encoding --separator --order --keep-fill -f --force --no-consolidate' ;;
        export) words+=' -F --format --field --nearest --decode --memory --trust --missing-chunks --skip-damaged --lost -f --force' ;;
        explain) words+=' -w --write --memory --trust --nearest' ;;
        cp) words+=' -f --force --resume --skip-equal --verify --no-consolidate' ;;
        mv) words+=' -f --force --resume --skip-equal --no-consolidate' ;;
        rm) words+=' -r --recursive -f --force -n --dry-run --no-consolidate' ;;
        resize) words+=' --keep-chunks --no-consolidate' ;;
        append) words+=' --axis -F --format --byte-order --no-consolidate' ;;
        reencode) words+=' -c --chunks -s --shards -C --codec --index-codec --checksum --index-at-start --fill --dims -a --attributes --zarr-format --key-encoding --separator --order -t --dtype --rounding --out-of-range --nearest --resume -f --force --verify --keep-fill --missing-chunks --skip-damaged --no-consolidate' ;;
        migrate) words+=' --zarr-format -n --dry-run -f --force --remove-old --keep-fill --resume --no-consolidate' ;;
        verify) words+=' --no-data --missing-chunks --strict -N --show --repair -y --yes' ;;
        diff) words+=' --rtol --atol --nan-differs -N --show --nearest --storage --data --field --missing-chunks' ;;
        clean) words+=' -n --dry-run --age' ;;
        repack) words+=' -n --dry-run' ;;
        consolidate) words+=' --check --key' ;;
        plot) words+=' -o --output -f --force -t --term -s --slice --field --nearest --decode --size -m --map -p --percentiles --min --max --hide-fill --origin --aspect --bare --title' ;;
        summary) words+=' --nearest --decode --over --weights --missing --quantiles -b --bins --edges -F --format --field --trust --missing-chunks' ;;
        calibrate) words+=' -n --dry-run --size' ;;
        help) words+=' --man' ;;
        esac
    else
        COMPREPLY=($(compgen -f -- "$cur"))
        compopt -o filenames 2>/dev/null
        return
    fi
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -F _zarrc zarrc
