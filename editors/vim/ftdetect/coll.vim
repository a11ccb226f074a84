autocmd BufRead,BufNewFile *.coll setfiletype coll
